// Goal: the chosen token is the definition's, for every temperature; skipping changes nothing;
// over seeds the draws follow the softmax; rejected drafts leave no trace in the penalties.
// Method: a literal sampler that scores every candidate; chi-square on a small vocabulary.

#include "decode/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "decode/noise.h"
#include "tests/support/make_sampler.h"

namespace vericache::decode {
namespace {

using testing_support::MakeSampler;

std::vector<float> RandomLogits(int n, uint64_t seed, float scale) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> logits(static_cast<size_t>(n));
  for (float& logit : logits) logit = normal(random);
  return logits;
}

// docs/numerics.md section 5 word for word: every candidate scored.
TokenId DrawLiterally(const std::vector<float>& logits, const SamplingParams& params,
                      Position position) {
  const PositionNoise noise(params.seed, params.choice, position);
  int best = -1;
  double best_score = 0;
  for (int id = 0; id < static_cast<int>(logits.size()); ++id) {
    const double score = static_cast<double>(logits[static_cast<size_t>(id)]) /
                             static_cast<double>(params.temperature) +
                         GumbelFromBits(noise.Bits(TokenId{id}));
    if (best < 0 || score > best_score) {
      best = id;
      best_score = score;
    }
  }
  return TokenId{best};
}

TEST(Sampler, GreedyTakesTheLowestIdAmongTheHighest) {
  EXPECT_EQ(ArgMax(std::vector<float>{1, 3, 2, 3, 3}), TokenId{1});
  EXPECT_EQ(ArgMax(std::vector<float>{-5}), TokenId{0});
  Sampler sampler = MakeSampler({}, 5);
  EXPECT_EQ(sampler.Sample(std::vector<float>{-1, -3, -2, -1, -1}, Position{9}), TokenId{0});
}

TEST(Sampler, GreedyTakesTheLowestIdWhenFiltersReorder) {
  SamplingParams params;
  params.filters.top_k = 3;
  Sampler sampler = MakeSampler(params, 6);
  EXPECT_EQ(sampler.Sample(std::vector<float>{0, 1, 7, 2, 7, 7}, Position{0}), TokenId{2});
}

TEST(Sampler, SkippingCandidatesNeverChangesTheChoice) {
  int n_not_top = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const float scale = trial % 3 == 0 ? 0.01f : trial % 3 == 1 ? 2.0f : 20.0f;
    const int n_vocab = 1 + (trial * 7) % 400;
    const auto logits = RandomLogits(n_vocab, static_cast<uint64_t>(trial), scale);
    SamplingParams params{.temperature = trial % 2 == 0 ? 0.8f : 5.0f,
                          .seed = static_cast<uint64_t>(trial) * 77};
    Sampler sampler = MakeSampler(params, n_vocab);
    const Position position{trial % 11};
    const TokenId token = *sampler.Sample(logits, position);
    ASSERT_EQ(token, DrawLiterally(logits, params, position)) << trial;
    n_not_top += token != ArgMax(logits) ? 1 : 0;
  }
  EXPECT_GT(n_not_top, 300);  // the noise did decide
}

TEST(Sampler, DrawsTheSameWhenManyLogitsAreEqual) {
  const std::vector<float> logits(257, 1.5f);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const SamplingParams params{.temperature = 1.0f, .seed = seed};
    Sampler sampler = MakeSampler(params, 257);
    ASSERT_EQ(sampler.Sample(logits, Position{3}), DrawLiterally(logits, params, Position{3}));
  }
}

// S15: 0 is argmax; almost 0 is argmax as well, and neither overflows nor divides by zero.
TEST(Sampler, TinyTemperaturesTakeTheHighestLogit) {
  for (const float temperature : {1e-9f, 1e-30f, 1e-45f}) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const auto logits = RandomLogits(100, seed, 3.0f);
      Sampler sampler = MakeSampler({.temperature = temperature, .seed = seed}, 100);
      ASSERT_EQ(sampler.Sample(logits, Position{0}), ArgMax(logits));
    }
  }
}

TEST(Sampler, IsAFunctionOfItsArguments) {
  const auto logits = RandomLogits(50, 1, 1.0f);
  Sampler used = MakeSampler({.temperature = 1.0f, .seed = 5}, 50);
  for (int i = 0; i < 20; ++i) used.Sample(logits, Position{100 + i});
  Sampler fresh = MakeSampler({.temperature = 1.0f, .seed = 5}, 50);
  EXPECT_EQ(used.Sample(logits, Position{7}), fresh.Sample(logits, Position{7}));
}

// S14: over seeds the draws follow the softmax.
TEST(Sampler, FollowsTheSoftmaxOverSeeds) {
  const std::vector<float> logits = {0.0f, 1.0f, -1.0f, 2.0f, 0.5f, -2.0f, 1.5f, 0.25f};
  constexpr int kSeeds = 100000;
  constexpr double kTemperature = 0.8;
  std::vector<int> counts(logits.size());
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Sampler sampler =
        MakeSampler({.temperature = static_cast<float>(kTemperature), .seed = seed}, 8);
    ++counts[static_cast<size_t>(sampler.Sample(logits, Position{4})->value)];
  }
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) / kTemperature);
  double chi_square = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double expected =
        kSeeds * std::exp(static_cast<double>(logits[i]) / kTemperature) / total;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 24.3);  // 7 degrees of freedom, one in a thousand
}

TEST(Sampler, DrawsIndependentlyAtDifferentPositions) {
  // Pairs of tokens at neighbouring positions, four equal logits each: 16 equal cells.
  const std::vector<float> logits(4, 0.0f);
  std::vector<int> counts(16);
  constexpr int kSeeds = 64000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Sampler sampler = MakeSampler({.temperature = 1.0f, .seed = seed}, 4);
    const int first = sampler.Sample(logits, Position{10})->value;
    const int second = sampler.Sample(logits, Position{11})->value;
    ++counts[static_cast<size_t>(4 * first + second)];
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - kSeeds / 16.0, 2) / (kSeeds / 16.0);
  EXPECT_LT(chi_square, 37.7);  // 15 degrees of freedom, one in a thousand
}

// S11: the state after a rejected round is the state before it.
TEST(Sampler, ACloneLeavesNoTraceInThePenalties) {
  SamplingParams params;
  params.filters.repeat_penalty = 1.5f;
  params.filters.presence_penalty = 0.7f;
  const auto logits = RandomLogits(64, 3, 1.0f);
  Sampler committed = MakeSampler(params, 64);
  for (int i = 0; i < 10; ++i) committed.Accept(TokenId{i});
  Sampler untouched = committed.Clone();

  Sampler drafter = committed.Clone();
  for (int i = 0; i < 40; ++i) drafter.Accept(*drafter.Sample(logits, Position{i}));

  for (int i = 0; i < 40; ++i) {
    const TokenId token = *committed.Sample(logits, Position{i});
    ASSERT_EQ(token, untouched.Sample(logits, Position{i}));
    committed.Accept(token);
    untouched.Accept(token);
  }
}

TEST(Sampler, PenaltiesSeeAcceptedTokens) {
  SamplingParams params;
  params.filters.presence_penalty = 5.0f;
  Sampler sampler = MakeSampler(params, 3);
  const std::vector<float> logits = {2, 1, 0};
  EXPECT_EQ(sampler.Sample(logits, Position{0}), TokenId{0});
  sampler.Accept(TokenId{0});
  EXPECT_EQ(sampler.Sample(logits, Position{1}), TokenId{1});
}

TEST(Sampler, ReportsLogprobsOfTheModel) {
  const std::vector<float> logits = {1, 3, 3, 0};
  const TokenLogprobs logprobs = ComputeLogprobs(logits, TokenId{0}, 3);
  const double total = std::log(std::exp(1.0) + 2 * std::exp(3.0) + 1.0);
  EXPECT_EQ(logprobs.token.id, TokenId{0});
  EXPECT_NEAR(logprobs.token.logprob, 1.0 - total, 1e-6);
  ASSERT_EQ(logprobs.top.size(), 3u);
  EXPECT_EQ(logprobs.top[0].id, TokenId{1});
  EXPECT_EQ(logprobs.top[1].id, TokenId{2});
  EXPECT_EQ(logprobs.top[2].id, TokenId{0});
  EXPECT_NEAR(logprobs.top[1].logprob, 3.0 - total, 1e-6);
  EXPECT_EQ(ComputeLogprobs(logits, TokenId{0}, 10).top.size(), 4u);
  EXPECT_TRUE(ComputeLogprobs(logits, TokenId{0}, 0).top.empty());
}

}  // namespace
}  // namespace vericache::decode
