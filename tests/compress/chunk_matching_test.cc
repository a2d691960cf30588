// Goal: pairs never leave their chunk or part, the best ones are merged, and a centroid is the
// weighted mean of its members.
// Method: small examples by hand; random slots against the rules.

#include "compress/chunk_matching.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

// Keys at angles (degrees) in a plane, values equal to the slot's number.
kv::HeadSlots AtAngles(const std::vector<double>& angles) {
  kv::HeadSlots slots(2);
  for (size_t i = 0; i < angles.size(); ++i) {
    const double radians = angles[i] * 3.14159265358979 / 180;
    const float key[] = {static_cast<float>(std::cos(radians)),
                         static_cast<float>(std::sin(radians))};
    const float value[] = {static_cast<float>(i), 1.0f};
    slots.Encode(kernels::RefKernels(), {.key = key, .value = value}, 1,
                 Position{static_cast<int>(i)});
  }
  return slots;
}

TEST(MatchChunks, PairsEvenSlotsWithTheClosestOddOneOfTheirChunk) {
  const kv::HeadSlots slots = AtAngles({0, 90, 80, 10, 10, 85, 0});
  const auto pairs = MatchChunks(slots, {.begin = 0, .end = 7, .chunk = 4});
  // Chunks {0 1 2 3} {4 5 6}: a 0 -> b 3, a 2 -> b 1; a 4 -> b 5, a 6 -> b 5.
  ASSERT_EQ(pairs.size(), 4u);
  const std::vector<std::pair<int, int>> expected = {{0, 3}, {2, 1}, {4, 5}, {6, 5}};
  for (size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(std::make_pair(pairs[i].a, pairs[i].b), expected[i]);
  }
  EXPECT_NEAR(pairs[0].cosine, std::cos(10 * 3.14159265 / 180), 1e-4);
  EXPECT_NEAR(pairs[3].cosine, std::cos(85 * 3.14159265 / 180), 1e-4);
}

TEST(MatchChunks, CountsFromTheBeginOfTheMiddle) {
  const kv::HeadSlots slots = AtAngles({0, 0, 0, 0, 0, 0});
  const auto pairs = MatchChunks(slots, {.begin = 1, .end = 6, .chunk = 2});
  ASSERT_EQ(pairs.size(), 2u);  // {1 2} {3 4} {5}: the lone slot has no b
  EXPECT_EQ(pairs[0].a, 1);
  EXPECT_EQ(pairs[0].b, 2);
  EXPECT_EQ(pairs[1].a, 3);
  EXPECT_TRUE(MatchChunks(slots, {.begin = 3, .end = 3, .chunk = 2}).empty());
  EXPECT_TRUE(MatchChunks(slots, {.begin = 3, .end = 4, .chunk = 2}).empty());
}

TEST(MatchChunks, PairsTheFirstHalfOfAChunkWithTheSecond) {
  const kv::HeadSlots slots = AtAngles({0, 90, 80, 10, 10, 85, 0});
  const auto pairs =
      MatchChunks(slots, {.begin = 0, .end = 7, .chunk = 4, .split = Split::kHalves});
  // Chunks {0 1 | 2 3} {4 5 | 6}.
  const std::vector<std::pair<int, int>> expected = {{0, 3}, {1, 2}, {4, 6}, {5, 6}};
  ASSERT_EQ(pairs.size(), expected.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(std::make_pair(pairs[i].a, pairs[i].b), expected[i]);
  }
}

TEST(MatchChunks, TossesACoinForEveryPositionAndRound) {
  const kv::HeadSlots slots = AtAngles(std::vector<double>(600, 45.0));
  const auto roles = [&](int round) {
    const auto pairs = MatchChunks(
        slots, {.begin = 0, .end = 600, .chunk = 60, .split = Split::kRandom, .round = round});
    std::vector<char> is_a(600, 0);
    for (const MergePair& pair : pairs) {
      EXPECT_EQ(pair.a / 60, pair.b / 60);
      is_a[static_cast<size_t>(pair.a)] = 1;
    }
    for (const MergePair& pair : pairs) EXPECT_EQ(is_a[static_cast<size_t>(pair.b)], 0);
    EXPECT_NEAR(static_cast<double>(pairs.size()), 300, 60);
    return is_a;
  };
  EXPECT_EQ(roles(0), roles(0));
  EXPECT_NE(roles(0), roles(1));
}

TEST(MatchChunks, BreaksTiesByTheLowerSlot) {
  const kv::HeadSlots slots = AtAngles({30, 30, 30, 30});
  const auto pairs = MatchChunks(slots, {.begin = 0, .end = 4, .chunk = 4});
  EXPECT_EQ(pairs[0].b, 1);
  EXPECT_EQ(pairs[1].b, 1);
}

TEST(BestPairs, AreTheMostSimilarTheLowerAmongEquals) {
  const std::vector<MergePair> pairs = {{.a = 0, .b = 1, .cosine = 0.5},
                                        {.a = 2, .b = 1, .cosine = 0.9},
                                        {.a = 4, .b = 5, .cosine = 0.5},
                                        {.a = 6, .b = 5, .cosine = -0.5}};
  const auto best = BestPairs(pairs, 2);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].a, 0);
  EXPECT_EQ(best[1].a, 2);
  EXPECT_EQ(BestPairs(pairs, 4).size(), 4u);
  EXPECT_EQ(BestPairs(pairs, 9).size(), 4u);
  EXPECT_TRUE(BestPairs(pairs, 0).empty());
}

TEST(MergePairs, MakesCentroidsWeightedByDegree) {
  kv::HeadSlots slots(2);
  const float keys[][2] = {{1, 0}, {0, 1}, {2, 2}, {5, 5}};
  const float values[][2] = {{10, 0}, {0, 10}, {4, 4}, {7, 7}};
  const int32_t degrees[] = {1, 2, 5, 1};
  for (int i = 0; i < 4; ++i) {
    slots.Encode(kernels::RefKernels(), {.key = keys[i], .value = values[i]}, degrees[i],
                 Position{10 * i});
  }
  const std::vector<MergePair> pairs = {{.a = 0, .b = 1, .cosine = 1},
                                        {.a = 2, .b = 1, .cosine = 1}};
  kv::HeadSlots merged(2);
  MergePairs(slots, pairs, kernels::RefKernels(), merged);
  ASSERT_EQ(merged.Count(), 2);
  EXPECT_EQ(merged.degrees, (std::vector<int32_t>{8, 1}));
  EXPECT_EQ(merged.positions, (std::vector<Position>{Position{10}, Position{30}}));
  float key[2];
  float value[2];
  merged.Key(0, key);
  merged.Value(0, value);
  EXPECT_NEAR(key[0], (1 * 1 + 2 * 0 + 5 * 2) / 8.0, 1e-3);
  EXPECT_NEAR(key[1], (1 * 0 + 2 * 1 + 5 * 2) / 8.0, 1e-3);
  EXPECT_NEAR(value[0], (1 * 10 + 2 * 0 + 5 * 4) / 8.0, 1e-3);
  EXPECT_NEAR(value[1], (1 * 0 + 2 * 10 + 5 * 4) / 8.0, 1e-3);
  merged.Key(1, key);
  EXPECT_EQ(merged.key_steps[1], slots.key_steps[3]);
}

PROPERTY(MatchChunks, KeepsItsRulesOnAnyContent, 20) {
  const testing_support::RandomJob job(rng, testing_support::AnyJob(rng));
  const int n = job.Full().Length();
  const kv::HeadSlots slots = testing_support::SlotsOf(job.Full(), 0, 0, n);
  const int begin = rng.In(0, n);
  const Middle middle{.begin = begin, .end = rng.In(begin, n), .chunk = rng.In(2, 70)};
  const auto pairs = MatchChunks(slots, middle);
  int last_a = -1;
  for (const MergePair& pair : pairs) {
    EXPECT_GT(pair.a, last_a);
    last_a = pair.a;
    const int a = pair.a - begin;
    const int b = pair.b - begin;
    EXPECT_EQ(a / middle.chunk, b / middle.chunk);
    EXPECT_EQ(a % middle.chunk % 2, 0);
    EXPECT_EQ(b % middle.chunk % 2, 1);
    EXPECT_LE(std::abs(pair.cosine), 1 + 1e-9);
  }
  int n_expected = 0;
  for (int slot = begin; slot < middle.end; ++slot) {
    const int chunk_begin = begin + (slot - begin) / middle.chunk * middle.chunk;
    const bool is_a = (slot - chunk_begin) % 2 == 0;
    n_expected += is_a && std::min(chunk_begin + middle.chunk, middle.end) - chunk_begin >= 2;
  }
  EXPECT_EQ(static_cast<int>(pairs.size()), n_expected);
}

}  // namespace
}  // namespace vericache::compress
