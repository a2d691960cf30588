// Goal: the claim of identity_test.cc, on far more of the grid.
// Method: seeded random cases, longer answers, more seeds; VERICACHE_SEED replays one,
// VERICACHE_CASES=N runs N times as many.

#include <gtest/gtest.h>

#include "tests/support/identity_case.h"
#include "tests/support/property.h"

namespace vericache {
namespace {

using testing_support::IdentityCase;
using testing_support::IdentityGrid;
using testing_support::IdentityRunner;
using testing_support::Rng;

IdentityCase RandomCase(const IdentityGrid& grid, Rng& rng) {
  std::vector<int> choice;
  for (const int n_values : grid.Sizes()) choice.push_back(rng.In(0, n_values - 1));
  IdentityCase c = grid.At(choice);
  if (rng.Chance(0.5)) c.n_prompt = rng.In(1, 3 * testing_support::kChunk + 3);
  if (rng.Chance(0.5)) c.draft_len = rng.In(0, decode::kMaxDraftLen);
  if (rng.Chance(0.5)) c.tail = {.n_recent = rng.In(1, 100), .interval = rng.In(1, 200)};
  c.prefill_chunk = rng.Chance(0.3) ? rng.In(1, testing_support::kChunk) : c.prefill_chunk;
  c.temperature = rng.OneOf({0.0f, 0.3f, 0.8f, 1.5f});
  c.max_tokens = rng.In(1, 300);
  if (rng.Chance(0.2)) c.drafter = decode::DrafterKind::kNgram;
  c.seed = rng.Next() % 4;
  return c;
}

TEST(IdentitySlow, DraftedEqualsFullOnARandomSample) {
  const IdentityGrid grid;
  IdentityRunner runner;
  testing_support::RunProperty(150, [&](Rng& rng) { runner.Run(RandomCase(grid, rng)); });
  EXPECT_GT(runner.n_accepted, 0);
}

}  // namespace
}  // namespace vericache
