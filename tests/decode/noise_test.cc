// Goal: the noise is the Gumbel noise of docs/numerics.md section 5, a pure function of its
// place, and the test that skips a logarithm never skips a draw that could reach its bound.
// Method: comparison with the definition in long double; moments over many draws; draws and
// bounds chosen around every power of two.

#include "decode/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace vericache::decode {
namespace {

TEST(Noise, EqualsTheDefinitionWithinRounding) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random() >> (i % 50);  // small draws too
    const long double u = (static_cast<long double>(bits >> 11) + 0.5L) * 0x1p-53L;
    const long double expected = -std::log(-std::log(u));
    ASSERT_NEAR(GumbelFromBits(bits), static_cast<double>(expected), 1e-12);
  }
}

TEST(Noise, IsBoundedAtBothEnds) {
  EXPECT_GT(GumbelFromBits(0), kMinGumbel);
  EXPECT_LT(GumbelFromBits(0), kMinGumbel + 0.01);
  EXPECT_LT(GumbelFromBits(~uint64_t{0}), kMaxGumbel);
  EXPECT_GT(GumbelFromBits(~uint64_t{0}), kMaxGumbel - 0.01);
}

TEST(Noise, HasTheMeanAndVarianceOfGumbel) {
  constexpr int kDraws = 400000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const PositionNoise noise(7, 0, Position{i / 100});
    const double g = GumbelFromBits(noise.Bits(TokenId{i % 100}));
    sum += g;
    squares += g * g;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.5772156649, 0.01);                               // Euler's constant
  EXPECT_NEAR(squares / kDraws - mean * mean, 9.8696044 / 6.0, 0.02);  // pi^2 / 6
}

TEST(Noise, DiffersWithSeedChoicePositionAndId) {
  std::set<uint64_t> words;
  int n = 0;
  for (const uint64_t seed :
       {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 32) - 1, uint64_t{1} << 32, ~uint64_t{0}}) {
    for (const uint32_t choice : {0u, 1u, 2u}) {
      for (const int position : {0, 1, 2, 1000}) {
        for (const int id : {0, 1, 2, 49151}) {
          words.insert(PositionNoise(seed, choice, Position{position}).Bits(TokenId{id}));
          ++n;
        }
      }
    }
  }
  EXPECT_EQ(words.size(), static_cast<size_t>(n));
}

TEST(Noise, SkipsOnlyDrawsBelowTheBound) {
  std::mt19937_64 random(2);
  int n_skipped = 0;
  for (int i = 0; i < 200000; ++i) {
    // Draws with many leading ones, whose noise is large.
    const uint64_t bits = ~(random() >> (i % 55));
    const double g = GumbelFromBits(bits);
    const double bound = g + (static_cast<double>(random() % 2001) - 1000.0) * 1e-3;
    if (!GumbelIsBelow(bits, bound)) continue;
    ++n_skipped;
    ASSERT_LT(g, bound + 1e-12) << std::hex << bits;
  }
  EXPECT_GT(n_skipped, 10000);
}

TEST(Noise, SkipsNearlyAllDrawsBelowAHighBound) {
  std::mt19937_64 random(3);
  int n_skipped = 0;
  for (int i = 0; i < 10000; ++i) n_skipped += GumbelIsBelow(random(), 8.0) ? 1 : 0;
  EXPECT_GT(n_skipped, 9900);
  EXPECT_TRUE(GumbelIsBelow(~uint64_t{0}, kMaxGumbel + 1));
  EXPECT_FALSE(GumbelIsBelow(0, -1e300));
}

}  // namespace
}  // namespace vericache::decode
