// Goal: ids of different kinds do not mix.
// Method: what must not compile is asserted at compile time.
#include "base/ids.h"

#include <gtest/gtest.h>

#include <concepts>
#include <type_traits>
#include <unordered_set>

namespace vericache {
namespace {

template <typename A, typename B>
concept Comparable = requires(A a, B b) {
  a == b;
};
template <typename A, typename B>
concept Ordered = requires(A a, B b) {
  a < b;
};
template <typename A, typename B>
concept Subtractable = requires(A a, B b) {
  a - b;
};
template <typename A, typename B>
concept Addable = requires(A a, B b) {
  a + b;
};

static_assert(Comparable<Position, Position> && Ordered<Position, Position> &&
              Subtractable<Position, Position>);
static_assert(!Comparable<Position, Slot> && !Ordered<Position, Slot> &&
              !Subtractable<Position, Slot>);
static_assert(!Comparable<Position, int> && !Ordered<TokenId, int>);
static_assert(!Addable<Position, Position>, "the sum of two positions means nothing");
static_assert(!std::is_convertible_v<int, Position> && !std::is_convertible_v<Position, int>);
static_assert(!std::is_convertible_v<Position, Slot> && !std::is_constructible_v<Slot, Position>);
static_assert(!std::is_assignable_v<Position&, Slot> && !std::is_assignable_v<Position&, int>);
static_assert(sizeof(TokenId) == sizeof(int32_t) && std::is_trivially_copyable_v<TokenId>);

TEST(StrongId, CountsForwardAndMeasuresDistance) {
  Position position(7);
  EXPECT_EQ(++position, Position(8));
  EXPECT_EQ(position + 2, Position(10));
  EXPECT_EQ(Position(10) - Position(4), 6);
  EXPECT_LT(Position(4), Position(10));
  EXPECT_EQ(Position().value, 0);
}

TEST(StrongId, IsAHashKey) {
  const std::unordered_set<TokenId> tokens{TokenId(1), TokenId(2), TokenId(1)};
  EXPECT_EQ(tokens.size(), 2u);
  EXPECT_TRUE(tokens.contains(TokenId(2)));
}

}  // namespace
}  // namespace vericache
