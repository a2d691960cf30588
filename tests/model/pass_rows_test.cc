// Goal: rows keep their group's tokens, positions and wishes, and results find the way back.
#include "model/pass_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/segmented_kv.h"

namespace vericache::model {
namespace {

using ::testing::ElementsAre;

ModelConfig Config() {
  ModelConfig config;
  config.n_layers = 1;
  config.n_kv_heads = 1;
  config.head_dim = 16;
  config.n_vocab = 10;
  return config;
}

class PassRowsOfThree : public ::testing::Test {
 protected:
  void Begin() {
    const RowGroup groups[] = {
        {.tokens = tokens_, .first_position = Position(5), .kv = &kv_, .logits = LogitRows::kLast},
        {.tokens = tokens_, .first_position = Position(5), .kv = &kv_, .logits = LogitRows::kNone},
        {.tokens = std::span(tokens_).first(2),
         .first_position = Position(5),
         .kv = &kv_,
         .logits = LogitRows::kAll}};
    rows_.Begin(groups, Config());
  }

  std::vector<TokenId> tokens_ = {TokenId(7), TokenId(8), TokenId(9)};
  testing_support::SegmentedKv kv_{{1, 1, 16}, {2, 3}, 3};
  PassRows rows_;
};

TEST_F(PassRowsOfThree, AreNumberedGroupByGroup) {
  Begin();
  EXPECT_EQ(rows_.Count(), 8);
  EXPECT_EQ(rows_.PositionEnd(), 8);
  EXPECT_EQ(rows_.Row(4).token, TokenId(8));
  EXPECT_EQ(rows_.Row(4).position, Position(6));
  EXPECT_EQ(rows_.Row(4).group_idx, 1);
  EXPECT_EQ(rows_.NewSlot(0, 0, 4).slot, 4);  // behind three slots, the second row
  EXPECT_THAT(rows_.Wanted(), ElementsAre(2, 6, 7));
}

TEST_F(PassRowsOfThree, GiveEachGroupItsLogitsAndFlags) {
  Begin();
  rows_.Flag(3);
  rows_.Flag(7);
  std::vector<float> logits(30);
  const auto results = rows_.Collect(logits.data(), 10);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].n_rows, 1);
  EXPECT_EQ(results[1].n_rows, 0);
  EXPECT_EQ(results[2].n_rows, 2);
  EXPECT_EQ(results[2].data, logits.data() + 10);
  EXPECT_TRUE(results[0].are_all_rows_finite);
  EXPECT_FALSE(results[1].are_all_rows_finite);  // a row without logits
  EXPECT_FALSE(results[2].are_all_rows_finite);
  EXPECT_THAT(results[0].is_finite, ElementsAre(1));
  EXPECT_THAT(results[2].is_finite, ElementsAre(1, 0));
  Begin();
  EXPECT_TRUE(rows_.Collect(logits.data(), 10)[2].are_all_rows_finite);
}

TEST_F(PassRowsOfThree, RefuseWhatAPassCannotRun) {
  RowGroup group{.tokens = tokens_, .first_position = Position(4), .kv = &kv_};
  EXPECT_DEATH(rows_.Begin({&group, 1}, Config()), "position 4 behind 5 tokens");
  group.first_position = Position(5);
  tokens_[1] = TokenId(10);
  EXPECT_DEATH(rows_.Begin({&group, 1}, Config()), "token 10 of 10");
  group.tokens = {};
  EXPECT_DEATH(rows_.Begin({&group, 1}, Config()), "group 0 of 0 rows");
}

}  // namespace
}  // namespace vericache::model
