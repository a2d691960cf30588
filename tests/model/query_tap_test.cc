// Goal: the window is the newest tokens before any end within the slack, in order, whatever was
// rejected.
// Method: sequences of passes with marked queries.
#include "model/query_tap.h"

#include <gtest/gtest.h>

#include <vector>

namespace vericache::model {
namespace {

constexpr QueryShape kShape{.n_layers = 2, .n_heads = 3, .head_dim = 4};

// Stores queries that name pass, layer, head and position.
void RunPass(QueryTap& tap, int first, int n_rows, int mark) {
  tap.BeginPass(Position(first), n_rows);
  for (int layer = 0; layer < kShape.n_layers; ++layer) {
    for (int head = 0; head < kShape.n_heads; ++head) {
      for (int i = 0; i < n_rows; ++i) {
        if (!tap.Wants(Position(first + i))) continue;
        const std::vector<float> q(4, static_cast<float>(mark + layer * 10 + head) +
                                          static_cast<float>(first + i) / 1024.0f);
        tap.Store(layer, head, Position(first + i), q.data());
      }
    }
  }
}

std::vector<int> Window(const QueryTap& tap, int end) {
  std::vector<int> window;
  for (const Position position : tap.Window(Position(end))) window.push_back(position.value);
  return window;
}

TEST(QueryTap, KeepsTheNewestTokensOfALongPass) {
  QueryTap tap(kShape, 4, 2);
  RunPass(tap, 0, 100, 1000);
  EXPECT_EQ(Window(tap, 100), (std::vector<int>{96, 97, 98, 99}));
  for (int head = 0; head < 3; ++head) {
    EXPECT_EQ(tap.Queries(1, Position(97))[head * 4],
              static_cast<float>(1010 + head) + 97.0f / 1024.0f);
  }
}

TEST(QueryTap, GivesWhatThereIsOfAShortSequence) {
  QueryTap tap(kShape, 8, 2);
  EXPECT_TRUE(Window(tap, 0).empty());
  RunPass(tap, 0, 3, 0);
  EXPECT_EQ(Window(tap, 3), (std::vector<int>{0, 1, 2}));
}

TEST(QueryTap, KeepsTheWindowWhenRowsAreRejected) {
  QueryTap tap(kShape, 4, 3);
  RunPass(tap, 0, 10, 1000);
  RunPass(tap, 10, 4, 2000);  // of which only 10 is accepted
  EXPECT_EQ(Window(tap, 11), (std::vector<int>{7, 8, 9, 10}));
  RunPass(tap, 11, 1, 3000);
  EXPECT_EQ(Window(tap, 12), (std::vector<int>{8, 9, 10, 11}));
  EXPECT_EQ(tap.Queries(0, Position(10))[0], 2000.0f + 10.0f / 1024.0f);
  EXPECT_EQ(tap.Queries(0, Position(11))[0], 3000.0f + 11.0f / 1024.0f);
}

TEST(QueryTap, DropsWhatLiesBeforeAGap) {
  QueryTap tap(kShape, 6, 0);
  RunPass(tap, 0, 4, 0);
  RunPass(tap, 6, 2, 0);  // 4 and 5 ran untapped
  EXPECT_EQ(Window(tap, 8), (std::vector<int>{6, 7}));
}

}  // namespace
}  // namespace vericache::model
