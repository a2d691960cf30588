// Q6. In another engine a quantised KV made prefill very slow (ggml-org/llama.cpp#12352): every
// chunk was attended over the quantised cache. Right: prefill runs over the full KV whatever drafts
// later, in the same passes. (That the first token is delivered before a compression is a test of
// engine/loop.)

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/identity_case.h"

namespace vericache {
namespace {

using Step = decode::Session::Step;

// What is done until the first token is known: it comes out of the last pass of the prompt.
std::vector<Step> StepsToTheFirstToken(const testing_support::TinyModel& tiny, decode::Mode mode) {
  decode::Request request;
  request.prompt = testing_support::RandomPrompt(1100, 3);
  request.mode = mode;
  request.compressor = "kivi:bits=4";
  request.draft_len = 5;
  request.max_tokens = 12;
  request.ignore_eos = true;
  std::vector<Step> steps = testing_support::RunSolo(tiny, request).steps;
  const auto is_prefill = [](Step step) { return step == Step::kPrefill; };
  const auto last = std::find_if(steps.rbegin(), steps.rend(), is_prefill).base();
  EXPECT_EQ(std::count(last, steps.end(), Step::kCompress) > 0, mode != decode::Mode::kFull);
  return {steps.begin(), last};
}

TEST(Q6PrefillCost, IsThatOfTheFullKv) {
  const testing_support::TinyModel tiny({});
  const std::vector<Step> three_passes(3, Step::kPrefill);
  for (const auto mode : {decode::Mode::kFull, decode::Mode::kVerified, decode::Mode::kLossy})
    EXPECT_EQ(StepsToTheFirstToken(tiny, mode), three_passes);
}

}  // namespace
}  // namespace vericache
