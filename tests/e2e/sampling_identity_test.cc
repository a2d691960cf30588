// Goal: the claim, with everything that narrows the choice: tokens, logits and the full KV equal
// those of plain decoding, to the bit, for each filter, penalty and grammar (S12, S13).
// Method: a pairwise covering of samplings, compressors, draft lengths and temperatures over a
// tiny random model; mode full is the oracle. The suite itself is checked: each sampling changed
// some answer, and drafts were accepted and were rejected.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/json_schema.h"
#include "tests/support/identity_case.h"
#include "tests/support/pairwise.h"

namespace vericache {
namespace {

using testing_support::ExpectIdentical;
using testing_support::Pairwise;
using testing_support::RandomPrompt;
using testing_support::RunSolo;
using testing_support::SoloResult;
using testing_support::TinyModel;

struct Sampling {
  std::string name;
  decode::SamplingParams params;
};

std::vector<Sampling> Samplings() {
  const auto schema = model::GrammarFromJsonSchema(
      R"({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
          "required": ["n", "s"]})");
  return {{"plain", {}},
          {"bias", {.filters = {.logit_bias = {{TokenId{65}, 4.0f}, {TokenId{66}, -INFINITY}}}}},
          {"penalties",
           {.filters = {.repeat_penalty = 1.3f,
                        .presence_penalty = 0.5f,
                        .frequency_penalty = 0.2f,
                        .penalty_last_n = 12}}},
          {"DRY", {.filters = {.dry_multiplier = 4.0f, .dry_allowed_length = 1, .dry_last_n = -1}}},
          {"top-k, top-p, min-p", {.filters = {.top_k = 12, .top_p = 0.8f, .min_p = 0.1f}}},
          {"typical", {.filters = {.typical_p = 0.4f}}},
          {"top-n-sigma", {.filters = {.top_n_sigma = 1.0f}}},
          {"XTC", {.xtc = {.probability = 0.6f, .threshold = 0.005f}}},
          {"grammar", {.filters = {.grammar = "root ::= ([a-z]+ [ ,.])*"}}},
          {"schema", {.filters = {.top_k = 40, .grammar = *schema}}},
          {"all",
           {.filters = {.top_k = 30,
                        .top_p = 0.9f,
                        .min_p = 0.02f,
                        .typical_p = 0.9f,
                        .top_n_sigma = 2.5f,
                        .repeat_penalty = 1.1f,
                        .dry_multiplier = 0.8f,
                        .logit_bias = {{TokenId{70}, 1.0f}},
                        .grammar = "root ::= [^b]*"},
            .xtc = {.probability = 0.5f, .threshold = 0.02f}}}};
}

TEST(SamplingIdentity, DraftedEqualsFullForEveryFilter) {
  const std::vector<Sampling> samplings = Samplings();
  const std::vector<std::string> specs = {"identity", "hostile", "streaming:keep=0.25",
                                          "snapkv:keep=0.5+kivi:bits=4", "centroid"};
  const std::vector<int> draft_lens = {1, 7, 25};
  const std::vector<float> temperatures = {0.0f, 0.8f, 1.5f};
  const auto size = [](const auto& values) { return static_cast<int>(values.size()); };

  const TinyModel tiny{model::TinyModelSpec{}};
  std::map<std::pair<size_t, size_t>, SoloResult> full;
  int64_t n_accepted = 0;
  int64_t n_rejected = 0;
  const auto cases =
      Pairwise({size(samplings), size(specs), size(draft_lens), size(temperatures)}).Cases();
  const auto make_request = [&](size_t sampling, size_t temperature) {
    decode::Request request;
    request.prompt = RandomPrompt(90, 5);
    request.sampling = samplings[sampling].params;
    request.sampling.temperature = temperatures[temperature];
    request.sampling.seed = 77;
    request.max_tokens = 60;
    request.ignore_eos = true;  // random weights end a text at any time
    request.hash_logits = true;
    request.n_logprobs = 2;
    return request;
  };
  for (size_t s = 0; s < samplings.size(); ++s) {
    for (size_t t = 0; t < temperatures.size(); ++t) {
      decode::Request request = make_request(s, t);
      request.mode = decode::Mode::kFull;
      full.emplace(std::pair(s, t), RunSolo(tiny, request));
    }
  }
  for (const auto& c : cases) {
    const auto s = static_cast<size_t>(c[0]);
    const auto t = static_cast<size_t>(c[3]);
    decode::Request request = make_request(s, t);
    request.compressor = specs[static_cast<size_t>(c[1])];
    request.draft_len = draft_lens[static_cast<size_t>(c[2])];
    SCOPED_TRACE(samplings[s].name + " " + request.compressor + " draft " +
                 std::to_string(*request.draft_len) + " T " + std::to_string(temperatures[t]));
    const SoloResult drafted = RunSolo(tiny, request, {.tail = {.n_recent = 8, .interval = 8}});
    ExpectIdentical(drafted, full.at({s, t}));
    n_accepted += drafted.stats.accepted;
    n_rejected += drafted.stats.drafted - drafted.stats.accepted;
    if (request.compressor == "identity") {
      EXPECT_EQ(drafted.stats.accepted, drafted.stats.drafted);
    }
    if (HasFailure()) return;
  }
  // The suite did test something.
  EXPECT_GT(n_accepted, 300);
  EXPECT_GT(n_rejected, 300);
  for (size_t s = 1; s < samplings.size(); ++s) {
    bool is_felt = false;
    for (size_t t = 0; t < temperatures.size(); ++t) {
      is_felt = is_felt || full.at({s, t}).tokens != full.at({0, t}).tokens;
    }
    EXPECT_TRUE(is_felt) << samplings[s].name;
  }
}

}  // namespace
}  // namespace vericache
