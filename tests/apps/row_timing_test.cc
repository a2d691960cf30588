// Goal: what is timed is what was asked for: every sequence holds its tokens in memory of its own,
// and a timed pass leaves nothing behind.
// Method: the logits of the last row tell what a pass saw; compared bit by bit over ways that must
// come to the same, with more rows than a pass takes and depths that go up and down.
#include "apps/row_timing.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/kernels.h"
#include "tests/support/model_run.h"
#include "tests/support/same_bits.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::apps {
namespace {

using model::LogitRows;
using testing_support::SameBits;

class TimedSequencesTest : public ::testing::Test {
 protected:
  std::unique_ptr<TimedSequences> Make(int n_sequences, int max_rows) {
    auto made = TimedSequences::Create(*model_, **kernels::SelectKernels("auto"), team_,
                                       {n_sequences, kRoom, max_rows});
    EXPECT_TRUE(made.has_value());
    return std::move(*made);
  }
  static std::vector<float> Logits(TimedSequences& sequences, int n_rows, LogitRows logits) {
    sequences.Time(n_rows, logits);
    const auto row = sequences.LastLogits();
    return {row.begin(), row.end()};
  }

  static constexpr int kRoom = 420;
  testing_support::TinyModelFile file_;
  std::unique_ptr<model::Model> model_ = testing_support::LoadModel(file_.Path());
  ThreadTeam team_{2};
};

TEST_F(TimedSequencesTest, EverySequenceHoldsWhatTheFirstHolds) {
  const auto one = Make(1, 64);
  const auto three = Make(3, 64);
  for (const int depth : {0, 300, 260, 310}) {  // across blocks of 256, and back
    ASSERT_TRUE(one->SetDepth(depth).has_value());
    ASSERT_TRUE(three->SetDepth(depth).has_value());
    EXPECT_EQ(three->Depth(), depth);
    EXPECT_TRUE(SameBits(Logits(*three, 1, LogitRows::kAll), Logits(*one, 1, LogitRows::kAll)))
        << "the last sequence at depth " << depth;
  }
}

TEST_F(TimedSequencesTest, TokensTakenOverAreThoseThatWerePrefilled) {
  const auto one = Make(1, 64);
  ASSERT_TRUE(one->SetDepth(300).has_value());
  const auto two = Make(2, 64);
  ASSERT_TRUE(two->TakeTokens(*one).has_value());
  EXPECT_EQ(two->Depth(), 300);
  for (const int depth : {280, 330}) {
    ASSERT_TRUE(one->SetDepth(depth).has_value());
    ASSERT_TRUE(two->SetDepth(depth).has_value());
    EXPECT_TRUE(SameBits(Logits(*two, 1, LogitRows::kAll), Logits(*one, 1, LogitRows::kAll)));
  }
}

TEST_F(TimedSequencesTest, ChunksOfRowsAreTheSameRowsAndAreForgotten) {
  const auto whole = Make(1, 120);
  const auto chunked = Make(2, 50);  // 25 rows of each sequence a pass
  ASSERT_TRUE(whole->SetDepth(250).has_value());
  ASSERT_TRUE(chunked->SetDepth(250).has_value());
  for (const LogitRows logits : {LogitRows::kLast, LogitRows::kAll, LogitRows::kLast}) {
    EXPECT_TRUE(SameBits(Logits(*chunked, 120, logits), Logits(*whole, 120, logits)));
    EXPECT_EQ(chunked->Depth(), 250);
  }
  EXPECT_EQ(chunked->RowRoom(), kRoom - 250);
}

TEST_F(TimedSequencesTest, PartsAddUpToNoMoreThanThePass) {
  const auto sequences = Make(1, 32);
  ASSERT_TRUE(sequences->SetDepth(100).has_value());
  const PassTiming timing = sequences->TimeParts(70, LogitRows::kAll);
  double sum = 0;
  for (const double seconds : timing.parts.seconds) sum += seconds;
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, timing.seconds);
  sum = 0;
  for (const double seconds : sequences->Time(1, LogitRows::kAll).parts.seconds) sum += seconds;
  EXPECT_EQ(sum, 0) << "nothing is measured that was not asked for";
}

TEST_F(TimedSequencesTest, CostCountsEveryPassAndSequence) {
  const auto one = Make(1, 32);
  const auto two = Make(2, 32);
  ASSERT_TRUE(one->SetDepth(40).has_value());
  ASSERT_TRUE(two->SetDepth(40).has_value());
  const PassCost step = one->Cost(1, LogitRows::kAll);
  const PassCost many = one->Cost(64, LogitRows::kLast);
  EXPECT_EQ(many.weight_bytes, 2 * step.weight_bytes);
  EXPECT_EQ(many.kv_bytes, step.kv_bytes * (40 + 72) / 40);  // the second pass is 32 tokens deeper
  EXPECT_LT(many.matrix_macs, 64 * step.matrix_macs);        // logits of one row
  EXPECT_EQ(two->Cost(1, LogitRows::kAll).kv_bytes, 2 * step.kv_bytes);
  EXPECT_EQ(two->Cost(1, LogitRows::kAll).weight_bytes, step.weight_bytes);
}

TEST_F(TimedSequencesTest, WhatDoesNotFitIsRefusedWithTheNumbers) {
  const auto sequences = Make(1, 32);
  const Status deep = sequences->SetDepth(kRoom + 1);
  ASSERT_FALSE(deep.has_value());
  EXPECT_NE(deep.error().message.find("421"), std::string::npos);
  const auto large = TimedSequences::Create(*model_, **kernels::SelectKernels("auto"), team_,
                                            {1, model_->Config().n_context + 1, 32});
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace vericache::apps
