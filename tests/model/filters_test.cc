// Goal: each filter keeps what its definition keeps, in libllama's order; state follows accepted
// tokens only and clones apart.
// Method: small logits whose survivors are known by hand; a naive top-p computed here.

#include "model/filters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/property.h"

namespace vericache::model {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::map<int, float> Apply(Filters& filters, const std::vector<float>& logits) {
  std::vector<Candidate> out(3);  // what was in it is replaced
  filters.Apply(logits, out);
  std::map<int, float> kept;
  for (const Candidate& candidate : out) kept[candidate.id.value] = candidate.logit;
  EXPECT_EQ(kept.size(), out.size()) << "a token twice";
  return kept;
}

std::map<int, float> Apply(const FilterParams& params, const std::vector<float>& logits) {
  return Apply(*Filters::Make(params, static_cast<int>(logits.size())), logits);
}

TEST(Filters, PassThroughOnlyWhenNothingIsAsked) {
  EXPECT_TRUE(Filters::Make({}, 10)->IsPassThrough());
  EXPECT_TRUE(Filters::Make({.repeat_penalty = 2.0f, .penalty_last_n = 0}, 10)->IsPassThrough());
  EXPECT_FALSE(Filters::Make({.top_k = 1}, 10)->IsPassThrough());
  EXPECT_FALSE(Filters::Make({.top_p = 0.9f}, 10)->IsPassThrough());
  EXPECT_FALSE(Filters::Make({.min_p = 0.1f}, 10)->IsPassThrough());
  EXPECT_FALSE(Filters::Make({.repeat_penalty = 1.1f}, 10)->IsPassThrough());
  EXPECT_FALSE(Filters::Make({.presence_penalty = 0.1f}, 10)->IsPassThrough());
  EXPECT_FALSE(Filters::Make({.frequency_penalty = 0.1f}, 10)->IsPassThrough());
  EXPECT_FALSE(Filters::Make({.logit_bias = {{TokenId{1}, 1.0f}}}, 10)->IsPassThrough());
}

TEST(Filters, PassThroughKeepsEveryLogit) {
  EXPECT_THAT(Apply({}, {1, 2, 3}), ElementsAre(Pair(0, 1.0f), Pair(1, 2.0f), Pair(2, 3.0f)));
}

TEST(Filters, KeepTheirShare) {
  const std::vector<float> logits = {0, 3, 1, 2};
  EXPECT_THAT(Apply({.top_k = 2}, logits), ElementsAre(Pair(1, 3.0f), Pair(3, 2.0f)));
  EXPECT_THAT(Apply({.top_k = 9}, logits).size(), 4u);
  // Probabilities .644 .237 .087 .032.
  EXPECT_THAT(Apply({.top_p = 0.6f}, logits), ElementsAre(Pair(1, 3.0f)));
  EXPECT_THAT(Apply({.top_p = 0.7f}, logits), ElementsAre(Pair(1, 3.0f), Pair(3, 2.0f)));
  EXPECT_THAT(Apply({.top_p = 0.0f}, logits), ElementsAre(Pair(1, 3.0f)));
  EXPECT_THAT(Apply({.min_p = 0.2f}, logits), ElementsAre(Pair(1, 3.0f), Pair(3, 2.0f)));
  EXPECT_THAT(Apply({.min_p = 1.0f}, logits), ElementsAre(Pair(1, 3.0f)));
  EXPECT_THAT(Apply({.top_k = 3, .top_p = 0.99f, .min_p = 0.3f}, logits),
              ElementsAre(Pair(1, 3.0f), Pair(3, 2.0f)));
}

TEST(Filters, BiasComesFirst) {
  const std::vector<float> logits = {0, 3, 1, 2};
  EXPECT_THAT(Apply({.top_k = 1, .logit_bias = {{TokenId{0}, 10.0f}}}, logits),
              ElementsAre(Pair(0, 10.0f)));
  EXPECT_THAT(Apply({.top_k = 1, .logit_bias = {{TokenId{1}, -INFINITY}}}, logits),
              ElementsAre(Pair(3, 2.0f)));
  EXPECT_THAT(Apply({.logit_bias = {{TokenId{7}, 1.0f}}}, logits).size(), 4u);
}

TEST(Filters, PenaltiesFollowAcceptedTokens) {
  const std::vector<float> logits = {-1, 3, 1, 2};
  const auto filters = Filters::Make({.repeat_penalty = 2.0f,
                                      .presence_penalty = 0.25f,
                                      .frequency_penalty = 0.5f,
                                      .penalty_last_n = 3},
                                     4);
  EXPECT_THAT(Apply(*filters, logits),
              ElementsAre(Pair(0, -1.0f), Pair(1, 3.0f), Pair(2, 1.0f), Pair(3, 2.0f)));
  filters->Accept(TokenId{0});
  filters->Accept(TokenId{1});
  filters->Accept(TokenId{1});
  EXPECT_THAT(
      Apply(*filters, logits),
      ElementsAre(Pair(0, FloatEq(-2.75f)), Pair(1, FloatEq(0.25f)), Pair(2, 1.0f), Pair(3, 2.0f)));
  filters->Accept(TokenId{2});  // token 0 leaves the window
  EXPECT_THAT(Apply(*filters, logits), ElementsAre(Pair(0, -1.0f), Pair(1, FloatEq(0.25f)),
                                                   Pair(2, FloatEq(-0.25f)), Pair(3, 2.0f)));
}

TEST(Filters, ClonesGoTheirOwnWay) {
  const std::vector<float> logits = {1, 2, 3};
  const auto filters = Filters::Make({.presence_penalty = 1.0f}, 3);
  filters->Accept(TokenId{2});
  const auto clone = filters->Clone();
  EXPECT_EQ(Apply(*clone, logits), Apply(*filters, logits));
  clone->Accept(TokenId{1});
  EXPECT_THAT(Apply(*clone, logits), ElementsAre(Pair(0, 1.0f), Pair(1, 1.0f), Pair(2, 2.0f)));
  EXPECT_THAT(Apply(*filters, logits), ElementsAre(Pair(0, 1.0f), Pair(1, 2.0f), Pair(2, 2.0f)));
  const auto unpenalised = Filters::Make({}, 3)->Clone();
  EXPECT_TRUE(unpenalised->IsPassThrough());
}

PROPERTY(Filters, TopPKeepsTheFewestThatReachIt, 100) {
  std::vector<float> logits(static_cast<size_t>(rng.In(1, 3000)));
  for (float& logit : logits) logit = 3.0f * rng.Normal();
  const float p = static_cast<float>(rng.Unit());
  const auto kept = Apply({.top_p = p}, logits);
  ASSERT_FALSE(kept.empty());
  std::vector<float> sorted = logits;
  std::sort(sorted.rbegin(), sorted.rend());
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit - sorted[0]));
  double mass = 0;
  for (size_t i = 0; i < kept.size(); ++i)
    mass += std::exp(static_cast<double>(sorted[i] - sorted[0])) / total;
  const double without_last =
      mass - std::exp(static_cast<double>(sorted[kept.size() - 1] - sorted[0])) / total;
  EXPECT_GE(mass, static_cast<double>(p) - 1e-4);
  EXPECT_LE(without_last, static_cast<double>(p) + 1e-4);
  for (const auto& [id, logit] : kept) {
    EXPECT_EQ(logit, logits[static_cast<size_t>(id)]);
    EXPECT_GE(logit, sorted[kept.size() - 1]);
  }
}

}  // namespace
}  // namespace vericache::model
