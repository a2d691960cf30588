// Goal: a segment knows the position and degree of each slot, given or implied.
// Method: examples at the edges.

#include "kv/segment.h"

#include <gtest/gtest.h>

namespace vericache::kv {
namespace {

TEST(Segment, CountsImpliedPositions) {
  const Segment segment{.n_slots = 5, .runs = {}, .first_position = Position{10}};
  EXPECT_EQ(segment.PositionOf(4), Position{14});
  EXPECT_EQ(segment.DegreeOf(4), 1);
  EXPECT_EQ(segment.CountBefore(Position{0}), 0);
  EXPECT_EQ(segment.CountBefore(Position{10}), 0);
  EXPECT_EQ(segment.CountBefore(Position{11}), 1);
  EXPECT_EQ(segment.CountBefore(Position{15}), 5);
  EXPECT_EQ(segment.CountBefore(Position{99}), 5);
}

TEST(Segment, CountsGivenPositions) {
  const Position positions[] = {Position{0}, Position{3}, Position{9}};
  const int32_t degrees[] = {1, 7, 2};
  const Segment segment{.n_slots = 3, .runs = {}, .positions = positions, .degrees = degrees};
  EXPECT_EQ(segment.PositionOf(1), Position{3});
  EXPECT_EQ(segment.DegreeOf(1), 7);
  EXPECT_EQ(segment.CountBefore(Position{0}), 0);
  EXPECT_EQ(segment.CountBefore(Position{3}), 1);
  EXPECT_EQ(segment.CountBefore(Position{4}), 2);
  EXPECT_EQ(segment.CountBefore(Position{10}), 3);
}

}  // namespace
}  // namespace vericache::kv
