// Goal: XTC leaves out what its definition leaves out, acts as often as asked, and is a function
// of the position's noise.
// Method: the definition written down over sorted candidates; hand-made probabilities.

#include "decode/xtc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "decode/noise.h"
#include "tests/support/property.h"

namespace vericache::decode {
namespace {

using model::Candidate;

constexpr uint64_t kAct = 0;  // the smallest draw

std::vector<Candidate> WithProbabilities(const std::vector<double>& p) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < p.size(); ++i) {
    candidates.push_back({TokenId{static_cast<int>(i)}, static_cast<float>(std::log(p[i]))});
  }
  return candidates;
}

std::vector<int> Ids(const std::vector<Candidate>& candidates) {
  std::vector<int> ids;
  for (const Candidate& c : candidates) ids.push_back(c.id.value);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<int> KeptBy(const XtcParams& params, uint64_t bits, std::vector<Candidate> candidates) {
  ApplyXtc(params, bits, candidates);
  return Ids(candidates);
}

TEST(Xtc, KeepsTheLeastLikelyOfTheLikely) {
  const auto candidates = WithProbabilities({0.05, 0.4, 0.12, 0.3, 0.13});
  const XtcParams always{.probability = 1.0f, .threshold = 0.1f};
  EXPECT_EQ(KeptBy(always, kAct, candidates), (std::vector<int>{0, 2}));
  EXPECT_EQ(KeptBy({.probability = 1.0f, .threshold = 0.2f}, kAct, candidates),
            (std::vector<int>{0, 2, 3, 4}));
  // One likely token, or none, is no choice to leave anything out of.
  EXPECT_EQ(KeptBy({.probability = 1.0f, .threshold = 0.35f}, kAct, candidates).size(), 5u);
  EXPECT_EQ(KeptBy({.probability = 1.0f, .threshold = 0.5f}, kAct, candidates).size(), 5u);
  EXPECT_EQ(KeptBy(always, kAct, WithProbabilities({1.0})), (std::vector<int>{0}));
}

TEST(Xtc, OneOfEqualsStays) {
  const auto candidates = WithProbabilities({0.25, 0.25, 0.25, 0.25});
  EXPECT_EQ(KeptBy({.probability = 1.0f, .threshold = 0.1f}, kAct, candidates),
            (std::vector<int>{3}));
}

TEST(Xtc, ActsAsOftenAsAsked) {
  const auto candidates = WithProbabilities({0.5, 0.5});
  int n_acted = 0;
  constexpr int kPositions = 20000;
  for (int i = 0; i < kPositions; ++i) {
    const uint64_t bits = PositionNoise(3, 0, Position{i}).SharedBits();
    n_acted +=
        KeptBy({.probability = 0.3f, .threshold = 0.1f}, bits, candidates).size() == 1 ? 1 : 0;
    EXPECT_EQ(KeptBy({.probability = 1.0f, .threshold = 0.1f}, bits, candidates).size(), 1u);
  }
  EXPECT_NEAR(n_acted, 0.3 * kPositions, 4 * std::sqrt(0.21 * kPositions));
}

PROPERTY(Xtc, EqualsItsDefinition, 300) {
  std::vector<Candidate> candidates;
  const int n = rng.In(1, 60);
  for (int id = 0; id < n; ++id) {
    candidates.push_back({TokenId{id}, static_cast<float>(rng.In(-6, 6)) / 2});
  }
  const XtcParams params{.probability = static_cast<float>(rng.Unit()),
                         .threshold = static_cast<float>(0.3 * rng.Unit())};
  const uint64_t bits = rng.Next();

  std::vector<Candidate> sorted = candidates;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  double total = 0;
  for (const Candidate& c : sorted) total += std::exp(static_cast<double>(c.logit));
  size_t n_likely = 0;
  while (n_likely < sorted.size() &&
         std::exp(static_cast<double>(sorted[n_likely].logit)) / total >=
             static_cast<double>(params.threshold)) {
    ++n_likely;
  }
  const double u = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  if (u <= static_cast<double>(params.probability) && n_likely > 1) {
    sorted.erase(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(n_likely - 1));
  }
  EXPECT_EQ(KeptBy(params, bits, candidates), Ids(sorted));
}

TEST(Xtc, ItsNoiseIsNoTokens) {
  const PositionNoise noise(1, 0, Position{5});
  for (int id = 0; id < 1000; ++id) EXPECT_NE(noise.Bits(TokenId{id}), noise.SharedBits());
  EXPECT_NE(noise.SharedBits(), PositionNoise(1, 0, Position{6}).SharedBits());
  EXPECT_NE(noise.SharedBits(), PositionNoise(1, 1, Position{5}).SharedBits());
  EXPECT_NE(noise.SharedBits(), PositionNoise(2, 0, Position{5}).SharedBits());
}

}  // namespace
}  // namespace vericache::decode
