// Goal: accepted is the longest common prefix, for every place of the first difference.
// Method: examples, among them no draft, nothing accepted and everything accepted.

#include "decode/accept.h"

#include <gtest/gtest.h>

#include <vector>

namespace vericache::decode {
namespace {

std::vector<TokenId> Ids(std::initializer_list<int> ids) {
  std::vector<TokenId> tokens;
  for (const int id : ids) tokens.emplace_back(id);
  return tokens;
}

TEST(Accept, TakesTheLongestCommonPrefix) {
  EXPECT_EQ(CountAccepted(Ids({1, 2, 3}), Ids({1, 2, 3, 4})), 3);
  EXPECT_EQ(CountAccepted(Ids({1, 2, 3}), Ids({1, 2, 9})), 2);
  EXPECT_EQ(CountAccepted(Ids({1, 2, 3}), Ids({1, 9})), 1);
}

TEST(Accept, NothingAcceptedIsZero) {
  EXPECT_EQ(CountAccepted(Ids({1, 2, 3}), Ids({9})), 0);
  EXPECT_EQ(CountAccepted(Ids({1, 2, 3}), Ids({})), 0);
  EXPECT_EQ(CountAccepted(Ids({}), Ids({5})), 0);
}

TEST(Accept, AMatchBehindADifferenceIsNotAccepted) {
  EXPECT_EQ(CountAccepted(Ids({1, 2, 3}), Ids({1, 9, 3, 4})), 1);
}

}  // namespace
}  // namespace vericache::decode
