// Goal: a team runs every member exactly once, its barriers hold, and work is cut without gaps
// or overlaps.
// Method: many short rounds with uneven work, so that waiting members reach both the spinning
// and the sleeping path.
#include "base/thread_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

namespace vericache {
namespace {

// Longer than a waiting member spins, so that the others fall asleep.
void WorkFor(std::chrono::microseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) {
  }
}

class Team : public ::testing::TestWithParam<int> {};

TEST_P(Team, RunsEveryMemberOnceAndWaitsForAll) {
  ThreadTeam team(GetParam());
  ASSERT_EQ(team.Size(), GetParam());
  std::vector<int> n_calls(static_cast<size_t>(GetParam()), 0);
  for (int round = 0; round < 400; ++round) {
    team.Run([&](Member& member) {
      EXPECT_EQ(member.Size(), GetParam());
      if (round % 100 == 0 && member.Index() == 0) WorkFor(std::chrono::microseconds(200));
      ++n_calls[static_cast<size_t>(member.Index())];
    });
    for (const int n : n_calls) ASSERT_EQ(n, round + 1);  // no lock: Run has returned, so all have
  }
}

TEST_P(Team, BarrierShowsEachRoundsWritesToAll) {
  ThreadTeam team(GetParam());
  std::vector<int> written(static_cast<size_t>(GetParam()), -1);
  std::atomic<int> n_wrong{0};
  team.Run([&](Member& member) {
    for (int round = 0; round < 600; ++round) {
      if (round % 50 == 0 && round / 50 % member.Size() == member.Index())
        WorkFor(std::chrono::microseconds(100));
      written[static_cast<size_t>(member.Index())] = round;
      member.Barrier();
      for (const int value : written) n_wrong += value != round;
      member.Barrier();  // nobody writes the next round while another still reads this one
    }
  });
  EXPECT_EQ(n_wrong, 0);
}

TEST_P(Team, StopsCleanlyHoweverShortItsLife) {
  for (int i = 0; i < 50; ++i) ThreadTeam unused(GetParam());
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> n_calls{0};
    {
      ThreadTeam team(GetParam());
      team.Run([&](Member&) { ++n_calls; });
    }
    ASSERT_EQ(n_calls, GetParam());
  }
}

TEST_P(Team, SharesCoverTheItemsInWholeUnits) {
  ThreadTeam team(GetParam());
  for (const int n_items : {0, 1, 7, 64, 1000}) {
    for (const int grain : {1, 16, 100}) {
      std::vector<Member::Range> shares(static_cast<size_t>(GetParam()));
      team.Run([&](Member& member) {
        shares[static_cast<size_t>(member.Index())] = member.Share(n_items, grain);
      });
      int expected_begin = 0;
      for (const Member::Range& share : shares) {
        ASSERT_EQ(share.begin, expected_begin);
        ASSERT_LE(share.begin, share.end);
        ASSERT_TRUE(share.end == n_items || share.end % grain == 0)
            << share.end << " of " << n_items;
        expected_begin = share.end;
      }
      ASSERT_EQ(expected_begin, n_items);
    }
  }
}

TEST_P(Team, QueueHandsOutEachItemOnce) {
  constexpr int kItems = 1001;
  for (const int run : {1, 4}) {
    ThreadTeam team(GetParam());
    WorkQueue queue;
    queue.Reset(kItems);
    EXPECT_EQ(queue.Size(), kItems);
    std::vector<std::atomic<int>> taken(kItems);
    team.Run([&](Member&) {
      for (int first = queue.Next(run); first >= 0; first = queue.Next(run)) {
        for (int item = first; item < std::min(first + run, kItems); ++item)
          ++taken[static_cast<size_t>(item)];
      }
    });
    for (const auto& n : taken) ASSERT_EQ(n, 1);
    EXPECT_EQ(queue.Next(), -1);
  }
}

// Three members on a machine of two cores is the case that a spinning barrier handles badly.
INSTANTIATE_TEST_SUITE_P(Sizes, Team, ::testing::Values(1, 2, 3));

TEST(WorkQueue, IsEmptyAfterItsLastItem) {
  WorkQueue queue;
  queue.Reset(2);
  EXPECT_EQ(queue.Next(), 0);
  EXPECT_EQ(queue.Next(), 1);
  EXPECT_EQ(queue.Next(), -1);
  queue.Reset(3);
  EXPECT_EQ(queue.Next(2), 0);
  EXPECT_EQ(queue.Next(2), 2);
  EXPECT_EQ(queue.Next(2), -1);
}

TEST(TeamDeathTest, NeedsAThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(ThreadTeam(0), "n_threads = 0");
}

}  // namespace
}  // namespace vericache
