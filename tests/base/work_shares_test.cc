// Goal: every item is handed out once, neighbours to one member.
// Method: single-threaded walks, then a team that counts.
#include "base/work_shares.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/thread_team.h"

namespace vericache {
namespace {

TEST(WorkShares, GivesAMemberItsOwnShareFromTheFrontThenOthersFromTheBack) {
  WorkShares shares(3);
  shares.Reset(7);  // [0, 2) [2, 4) [4, 7)
  std::vector<int> got;
  for (int item; (item = shares.Next(1)) >= 0;) got.push_back(item);
  EXPECT_EQ(got, (std::vector<int>{2, 3, 6, 5, 4, 1, 0}));
  EXPECT_EQ(shares.Next(0), -1);
}

TEST(WorkShares, IsEmptyBeforeTheFirstReset) {
  WorkShares shares(2);
  EXPECT_EQ(shares.Next(0), -1);
  shares.Reset(0);
  EXPECT_EQ(shares.Next(1), -1);
}

TEST(WorkShares, HandsOutEveryItemOnce) {
  for (const int n_threads : {1, 2, 3, 7}) {
    ThreadTeam team(n_threads);
    WorkShares shares(n_threads);
    for (const int n_items : {1, 2, 5, 1000}) {
      std::vector<std::atomic<int>> counts(static_cast<size_t>(n_items));
      shares.Reset(n_items);
      team.Run([&](Member& member) {
        for (int item; (item = shares.Next(member.Index())) >= 0;) {
          counts[static_cast<size_t>(item)].fetch_add(1);
        }
      });
      for (const auto& count : counts) ASSERT_EQ(count.load(), 1);
    }
  }
}

}  // namespace
}  // namespace vericache
