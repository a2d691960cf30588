// Goal: the measures of drift and perplexity are what their names say.
// Method: values worked out by hand, and literal definitions on random input.
#include "apps/measures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/property.h"

namespace vericache::apps {
namespace {

using testing_support::Rng;

std::vector<float> RandomLogits(Rng& rng, int n) {
  std::vector<float> logits;
  for (int i = 0; i < n; ++i) logits.push_back(static_cast<float>(rng.In(-2000, 2000)) / 100);
  return logits;
}

std::vector<double> Softmax(const std::vector<float>& logits) {
  std::vector<double> p;
  double sum = 0;
  for (const float logit : logits) sum += p.emplace_back(std::exp(static_cast<double>(logit)));
  for (double& value : p) value /= sum;
  return p;
}

TEST(Surprise, IsTheNegativeLogarithmOfTheProbability) {
  const std::vector<float> even(8, 700.0f);  // whose exponentials overflow a float
  EXPECT_NEAR(Surprise(even, TokenId{3}), std::log(8.0), 1e-12);
  Rng rng(1);
  const auto logits = RandomLogits(rng, 50);
  const auto p = Softmax(logits);
  for (int i = 0; i < 50; ++i) {
    EXPECT_NEAR(Surprise(logits, TokenId{i}), -std::log(p[static_cast<size_t>(i)]), 1e-9);
  }
}

TEST(KlDivergence, EqualsItsDefinition) {
  Rng rng(2);
  for (int round = 0; round < 20; ++round) {
    const auto a = RandomLogits(rng, 40);
    const auto b = RandomLogits(rng, 40);
    const auto p = Softmax(a);
    const auto q = Softmax(b);
    double expected = 0;
    for (size_t i = 0; i < p.size(); ++i) expected += p[i] * std::log(p[i] / q[i]);
    EXPECT_NEAR(KlDivergence(a, b), expected, 1e-9);
    EXPECT_GT(std::abs(KlDivergence(a, b) - KlDivergence(b, a)), 1e-6);  // from a, not from b
    EXPECT_EQ(KlDivergence(a, a), 0);
  }
}

TEST(MeanTally, GivesMeanAndStandardErrorAlsoFarFromZero) {
  MeanTally tally;
  EXPECT_EQ(tally.Mean(), 0);
  for (const double value : {1e9 + 1, 1e9 + 2, 1e9 + 6}) tally.Add(value);
  EXPECT_EQ(tally.Count(), 3);
  EXPECT_NEAR(tally.Mean(), 1e9 + 3, 1e-6);
  EXPECT_NEAR(tally.Error(), std::sqrt(7.0 / 3), 1e-9);  // variance 14 / 2, of a mean of 3
  MeanTally one;
  one.Add(5);
  EXPECT_EQ(one.Error(), 0);
}

TEST(FirstDifference, IsWhereTokensPartOrOneEnds) {
  const std::vector<TokenId> a = {TokenId{1}, TokenId{2}};
  const std::vector<TokenId> b = {TokenId{1}, TokenId{3}};
  EXPECT_EQ(FirstDifference(a, a), std::nullopt);
  EXPECT_EQ(FirstDifference(a, b), 1);
  EXPECT_EQ(FirstDifference(a, std::span(a).first(1)), 1);
  EXPECT_EQ(FirstDifference({}, a), 0);
}

// The recursive definition.
int64_t Literal(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return static_cast<int64_t>(a.size() + b.size());
  const int64_t replaced = Literal(a.substr(1), b.substr(1)) + (a[0] == b[0] ? 0 : 1);
  return std::min({replaced, Literal(a.substr(1), b) + 1, Literal(a, b.substr(1)) + 1});
}

TEST(EditDistance, EqualsItsDefinition) {
  Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    std::string a(static_cast<size_t>(rng.In(0, 6)), ' ');
    std::string b(static_cast<size_t>(rng.In(0, 6)), ' ');
    for (char& c : a) c = static_cast<char>(rng.In('a', 'c'));
    for (char& c : b) c = static_cast<char>(rng.In('a', 'c'));
    EXPECT_EQ(EditDistance(a, b), Literal(a, b)) << a << ' ' << b;
  }
}

TEST(EditDistance, CountsCharactersNotBytes) {
  EXPECT_EQ(EditDistance("naïve 😀", "naive 😁"), 2);
  EXPECT_EQ(EditDistance("", "é"), 1);
  EXPECT_EQ(CharacterCount("naïve 😀"), 7);
}

}  // namespace
}  // namespace vericache::apps
