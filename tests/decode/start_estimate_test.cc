// Goal: what drafts are expected to cost follows the bytes that steps read: nothing to gain where
// weights outweigh the KV, much where many sessions share them.
// Method: steps of known bytes; limits of the formula, and its order between cases.

#include "decode/start_estimate.h"

#include <gtest/gtest.h>

namespace vericache::decode {
namespace {

TEST(StartEstimate, WithoutKvADraftRowIsAPlainStep) {
  const StartEstimate estimate =
      EstimateStart({.seconds = 0.02, .weight_bytes = 1e8, .kv_bytes = 0}, 0, 64);
  EXPECT_DOUBLE_EQ(estimate.rows.draft, 1.0);
  EXPECT_DOUBLE_EQ(estimate.start_s, 0.0);
}

TEST(StartEstimate, SharedWeightsMakeDraftsCheaper) {
  const StartEstimate alone =
      EstimateStart({.seconds = 0.02, .weight_bytes = 1e8, .kv_bytes = 2e8}, 0, 64);
  const StartEstimate shared =
      EstimateStart({.seconds = 0.015, .weight_bytes = 1e8 / 8, .kv_bytes = 2e8}, 0, 64);
  EXPECT_LT(shared.rows.draft, alone.rows.draft);
  EXPECT_LT(alone.rows.draft, 1.0);
  EXPECT_GT(shared.rows.draft, 0.0);
}

TEST(StartEstimate, RowsOfThePrefillSayWhatVerifiedOnesCost) {
  const PlainStep step{.seconds = 0.02, .weight_bytes = 1e8, .kv_bytes = 2e8};
  EXPECT_DOUBLE_EQ(EstimateStart(step, 0.002, 64).rows.verified, 0.1);
  EXPECT_DOUBLE_EQ(EstimateStart(step, 0.1, 64).rows.verified, 1.0);  // one by one is possible
  EXPECT_DOUBLE_EQ(EstimateStart(step, 0, 64).rows.verified, RowCosts{}.verified);
}

TEST(StartEstimate, CompressingCostsByTheKvAlone) {
  const PlainStep step{.seconds = 0.02, .weight_bytes = 1e8, .kv_bytes = 1e8};
  const PlainStep longer{.seconds = 0.03, .weight_bytes = 1e8, .kv_bytes = 2e8};
  EXPECT_NEAR(EstimateStart(longer, 0, 64).start_s, 2 * EstimateStart(step, 0, 64).start_s, 1e-12);
}

TEST(StartEstimate, CompressingCostsByTheWindowThatIsScored) {
  const PlainStep step{.seconds = 0.02, .weight_bytes = 0, .kv_bytes = 1e8};
  EXPECT_DOUBLE_EQ(EstimateStart(step, 0, 256).start_s, 256 * 0.02);
  // Nothing is for nothing.
  EXPECT_GT(EstimateStart(step, 0, 0).start_s, 0);
  EXPECT_EQ(EstimateStart(step, 0, 0).start_s, EstimateStart(step, 0, 1).start_s);
}

}  // namespace
}  // namespace vericache::decode
