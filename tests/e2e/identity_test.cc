// Goal: the claim. Drafted tokens, logits and the full KV itself equal those of plain decoding,
// to the bit, for every compressor, draft length, prompt length, prefill chunk, thread count,
// seed and temperature.
// Method: a pairwise covering of that grid over tiny random models; mode full with one thread is
// the oracle. The suite itself is checked: over the grid drafts were accepted and were rejected,
// the identity compressor lost none, bodies were compressed. Answers that are long enough for auto
// to compress are cases of their own.

#include <gtest/gtest.h>

#include <set>

#include "tests/support/identity_case.h"
#include "tests/support/pairwise.h"

namespace vericache {
namespace {

using testing_support::IdentityCase;
using testing_support::IdentityGrid;
using testing_support::IdentityRunner;
using testing_support::kChunk;
using testing_support::Pairwise;

TEST(Pairwise, CoversEveryPairWithFewCases) {
  const std::vector<int> sizes = {2, 9, 6, 5, 2, 3, 2};
  const auto cases = Pairwise(sizes).Cases();
  std::set<std::tuple<size_t, int, size_t, int>> seen;
  for (const auto& c : cases) {
    ASSERT_EQ(c.size(), sizes.size());
    for (size_t a = 0; a < c.size(); ++a) {
      ASSERT_GE(c[a], 0);
      ASSERT_LT(c[a], sizes[a]);
      for (size_t b = a + 1; b < c.size(); ++b) seen.insert({a, c[a], b, c[b]});
    }
  }
  size_t n_pairs = 0;
  for (size_t a = 0; a < sizes.size(); ++a) {
    for (size_t b = a + 1; b < sizes.size(); ++b) {
      n_pairs += static_cast<size_t>(sizes[a] * sizes[b]);
    }
  }
  EXPECT_EQ(seen.size(), n_pairs);
  EXPECT_LT(cases.size(), 80u);  // of 6480; 54 is the least possible
}

TEST(Identity, DraftedEqualsFullOverAPairwiseGrid) {
  const IdentityGrid grid;
  IdentityRunner runner;
  for (const auto& choice : Pairwise(grid.Sizes()).Cases()) {
    runner.Run(grid.At(choice));
    if (HasFailure()) return;
  }
  const IdentityGrid lookups = testing_support::LookupGrid();
  for (const auto& choice : Pairwise(lookups.Sizes()).Cases()) {
    runner.Run(lookups.At(choice));
    if (HasFailure()) return;
  }
  // The suite did test something.
  EXPECT_GE(runner.n_cases, static_cast<int>(grid.specs.size() * grid.draft_lens.size()));
  EXPECT_GT(runner.n_accepted, 500);
  EXPECT_GT(runner.n_rejected, 500);
  EXPECT_GT(runner.n_identity_drafted, 100);
  EXPECT_GT(runner.n_hostile_drafted, 100);
  EXPECT_GT(runner.n_looked_up, 30);  // random weights repeat themselves now and then
  EXPECT_GT(runner.n_lookups_kept, 0);
  // The automatic length compresses nothing for answers as short as the grid's.
  EXPECT_GT(runner.n_compressions, runner.n_cases * 3 / 4);
}

// Auto compresses where it is expected to pay: over a long answer, and not where weights dominate
// (tests/decode/session_auto_test.cc). Here steps read the KV alone.
TEST(Identity, AutoOverACompressedKvEqualsFull) {
  for (const auto drafter : {decode::DrafterKind::kKv, decode::DrafterKind::kBoth}) {
    for (const char* spec : {"identity", "snapkv+kivi:bits=4", "centroid", "rotated", "hostile"}) {
      for (const float temperature : {0.0f, 0.8f}) {
        IdentityRunner runner;
        runner.Run({.spec = spec,
                    .drafter = drafter,
                    .draft_len = std::nullopt,
                    .n_prompt = kChunk + 100,
                    .temperature = temperature,
                    .max_tokens = 240});
        if (HasFailure()) return;
        EXPECT_GT(runner.n_compressions, 0) << spec;
        EXPECT_GT(runner.n_accepted + runner.n_rejected, 0) << spec;
      }
    }
  }
}

}  // namespace
}  // namespace vericache
