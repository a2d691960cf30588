// S22. Another engine's drafted output differed from plain output even with F32 weights
// (mlc-ai/mlc-llm#2167): it was not a matter of precision. Right: equal, for every type of weights.

#include <gtest/gtest.h>

#include "tests/support/identity_case.h"

namespace vericache {
namespace {

TEST(S22F32Weights, DraftedEqualsPlainForEveryWeightType) {
  int64_t n_accepted = 0;
  int64_t n_rejected = 0;
  for (const char* type : {"f32", "f16", "bf16", "q4_0"}) {
    for (const auto architecture : testing_support::AllArchitectures()) {
      const float temperature = architecture == model::Architecture::kLlama ? 0.0f : 0.8f;
      const testing_support::TinyModel tiny({.architecture = architecture, .weight_type = type});
      decode::Request request;
      request.prompt = testing_support::RandomPrompt(200, 4);
      request.max_tokens = 24;
      request.ignore_eos = true;
      request.hash_logits = true;
      request.sampling = {.temperature = temperature, .seed = 5};
      decode::Request plain = request;
      plain.mode = decode::Mode::kFull;
      const auto full = testing_support::RunSolo(tiny, plain);
      for (const char* spec : {"identity", "snapkv+kivi:bits=4", "hostile"}) {
        SCOPED_TRACE(fmt::format("{} {} T {}", type, spec, temperature));
        request.compressor = spec;
        request.draft_len = 7;
        const auto drafted = testing_support::RunSolo(tiny, request, {.prefill_chunk = 100});
        testing_support::ExpectIdentical(drafted, full);
        n_accepted += drafted.stats.accepted;
        n_rejected += drafted.stats.drafted - drafted.stats.accepted;
      }
    }
  }
  EXPECT_GT(n_accepted, 20);
  EXPECT_GT(n_rejected, 50);
}

}  // namespace
}  // namespace vericache
