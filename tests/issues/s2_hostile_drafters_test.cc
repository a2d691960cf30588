// S2. With a drafter switched on, another engine's accuracy fell from 93 to 62 %: rows of rejected
// drafts leaked into the sequence (ggml-org/llama.cpp#27975). Right: equal, whatever is proposed.
// Here the drafter proposes random tokens, one token for ever, and always a wrong one, on a real
// forward pass; the full KV must be that of plain decoding, to the bit.

#include <gtest/gtest.h>

#include "tests/support/identity_case.h"

namespace vericache {
namespace {

using testing_support::Rng;
using testing_support::SoloOptions;
using testing_support::SoloResult;
using testing_support::TinyModel;

TEST(S2HostileDrafters, ChangeNothing) {
  const TinyModel tiny({});
  const int n_vocab = tiny.Get().Config().n_vocab;
  auto rng = std::make_shared<Rng>(1);
  const std::pair<const char*, std::function<void(std::span<float>)>> drafters[] = {
      {"random",
       [=](std::span<float> x) { x[static_cast<size_t>(rng->In(0, n_vocab - 1))] = 1e3f; }},
      {"constant", [](std::span<float> x) { x[100] = 1e3f; }},
      {"always wrong",
       [](std::span<float> x) {
         // The truth's favourite is the draft's last choice (the draft KV is exact: identity).
         for (float& logit : x) logit = -logit;
       }},
  };
  for (const float temperature : {0.0f, 0.8f}) {
    decode::Request request;
    request.prompt = testing_support::RandomPrompt(300, 3);
    request.max_tokens = 40;
    request.ignore_eos = true;
    request.hash_logits = true;
    request.sampling = {.temperature = temperature, .seed = 9};
    decode::Request plain = request;
    plain.mode = decode::Mode::kFull;
    const SoloResult full = testing_support::RunSolo(tiny, plain);
    for (const auto& [name, distort] : drafters) {
      for (const int draft_len : {1, 7, 40}) {
        SCOPED_TRACE(fmt::format("{} drafter, length {}, T {}", name, draft_len, temperature));
        request.draft_len = draft_len;
        const SoloResult drafted =
            testing_support::RunSolo(tiny, request, {.distort_drafts = distort});
        testing_support::ExpectIdentical(drafted, full);
        EXPECT_LT(drafted.stats.accepted, drafted.stats.drafted / 4);
        EXPECT_GT(drafted.stats.drafted, 0);
      }
    }
  }
}

}  // namespace
}  // namespace vericache
