// S1. In another engine the greedy text changed as soon as drafting was switched on: the prompt was
// the word "serving" 48 times, 32 tokens, drafts of 4 (vllm-project/vllm#41758). A text that
// repeats itself makes near-ties, and a verify that sums in another order than a decode step flips
// them. Right: equal, for every way of drafting.

#include <gtest/gtest.h>

#include "tests/support/identity_case.h"

namespace vericache {
namespace {

TEST(S1RepeatedWord, DraftedEqualsPlain) {
  std::string text = "serving";
  for (int i = 1; i < 48; ++i) text += " serving";
  for (const auto architecture : testing_support::AllArchitectures()) {
    const testing_support::TinyModel tiny({.architecture = architecture});
    decode::Request request;
    request.prompt = tiny.GetTokenizer().Encode(text);
    request.max_tokens = 32;
    request.draft_len = 4;
    request.ignore_eos = true;
    request.hash_logits = true;
    decode::Request plain = request;
    plain.mode = decode::Mode::kFull;
    const auto full = testing_support::RunSolo(tiny, plain);
    EXPECT_EQ(full.tokens.size(), 32u);
    for (const auto drafter : {decode::DrafterKind::kKv, decode::DrafterKind::kBoth}) {
      for (const std::string& spec : testing_support::IdentitySpecs()) {
        SCOPED_TRACE(spec);
        request.drafter = drafter;
        request.compressor = spec;
        testing_support::ExpectIdentical(testing_support::RunSolo(tiny, request), full);
      }
    }
    // The way of drafting that the issue was about.
    request.drafter = decode::DrafterKind::kNgram;
    const auto looked_up = testing_support::RunSolo(tiny, request);
    testing_support::ExpectIdentical(looked_up, full);
    EXPECT_GT(looked_up.stats.drafted, 0);
  }
}

}  // namespace
}  // namespace vericache
