// Goal: a verdict of "identical" is given for equal tokens and equal logits, and for nothing else.
#include "apps/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vericache::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Generation Answer(const std::vector<int>& ids, uint64_t logits_hash) {
  Generation answer;
  for (const int id : ids) answer.tokens.emplace_back(id);
  answer.stats.generated_tokens = static_cast<int>(ids.size());
  answer.stats.decode_s = 0.5;
  answer.stats.logits_hash = logits_hash;
  return answer;
}

TEST(Comparison, FindsTheFirstDifference) {
  EXPECT_EQ(Comparison::FirstDifference(Answer({1, 2, 3}, 0), Answer({1, 2, 3}, 0)), std::nullopt);
  EXPECT_EQ(Comparison::FirstDifference(Answer({1, 2, 3}, 0), Answer({1, 9, 3}, 0)), 1);
  EXPECT_EQ(Comparison::FirstDifference(Answer({1, 2}, 0), Answer({1, 2, 3}, 0)), 2);
  EXPECT_EQ(Comparison::FirstDifference(Answer({1, 2, 3}, 0), Answer({}, 0)), 0);
  EXPECT_EQ(Comparison::FirstDifference(Answer({}, 0), Answer({}, 0)), std::nullopt);
}

TEST(Comparison, CallsIdenticalWhatHasTheSameTokensAndLogits) {
  Comparison comparison{
      .full = Answer({1, 2}, 7), .lossy = Answer({1, 3}, 8), .verified = Answer({1, 2}, 7)};
  EXPECT_TRUE(comparison.IsIdentical());
  comparison.verified = Answer({1, 3}, 7);
  EXPECT_FALSE(comparison.IsIdentical());
  comparison.verified = Answer({1, 2}, 8);
  EXPECT_FALSE(comparison.IsIdentical());
}

TEST(ComparisonTable, SaysWhereEachModeLeavesTheFullAnswer) {
  const Comparison comparison{.full = Answer({1, 2, 3}, 7),
                              .lossy = Answer({1, 2, 4}, 8),
                              .verified = Answer({1, 2, 3}, 7)};
  const std::string table = ComparisonTable(comparison);
  EXPECT_THAT(table, HasSubstr("token 2"));
  EXPECT_THAT(table, HasSubstr("yes"));
  EXPECT_THAT(table, Not(HasSubstr("please report")));
}

TEST(ComparisonTable, SaysWhenOnlyTheLogitsDiffer) {
  const Comparison comparison{
      .full = Answer({1}, 7), .lossy = Answer({1}, 7), .verified = Answer({1}, 8)};
  EXPECT_THAT(ComparisonTable(comparison), HasSubstr("please report"));
}

TEST(Generation, CountsSpeedFromTheFirstTokenOn) {
  EXPECT_DOUBLE_EQ(Answer({1, 2, 3}, 0).TokensPerSecond(), 4.0);
  EXPECT_DOUBLE_EQ(Answer({1}, 0).TokensPerSecond(), 0.0);
}

}  // namespace
}  // namespace vericache::apps
