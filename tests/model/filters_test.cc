// Goal: each filter keeps what its definition keeps, in libllama's order; state follows accepted
// tokens only and clones apart; asking the grammar in the order of likelihood changes nothing.
// Method: small logits whose survivors are known by hand; each filter, the penalties and DRY
// written down literally, in binary64, and compared over random logits and sequences.

#include "model/filters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>

#include "base/check.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/property.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using testing_support::Rng;

constexpr int kContext = 100;

std::unique_ptr<Filters> Make(const FilterParams& params, const Tokenizer& tokenizer) {
  auto filters = Filters::Make(params, tokenizer, kContext);
  VC_CHECK(filters.has_value(), "{}", filters.error().message);
  return *std::move(filters);
}

std::unique_ptr<Filters> Make(const FilterParams& params, int n_vocab) {
  return Make(params, testing_support::ByteTokenizer(n_vocab, -1));
}

std::map<int, float> Apply(Filters& filters, const std::vector<float>& logits) {
  std::vector<Candidate> out(3);  // what was in it is replaced
  filters.Apply(logits, out);
  std::map<int, float> kept;
  for (const Candidate& candidate : out) kept[candidate.id.value] = candidate.logit;
  EXPECT_EQ(kept.size(), out.size()) << "a token twice";
  return kept;
}

std::map<int, float> Apply(const FilterParams& params, const std::vector<float>& logits) {
  return Apply(*Make(params, static_cast<int>(logits.size())), logits);
}

std::vector<float> RandomLogits(Rng& rng, int n_min, int n_max) {
  std::vector<float> logits(static_cast<size_t>(rng.In(n_min, n_max)));
  const float scale = rng.In(0, 3) == 0 ? 30.0f : 3.0f;
  for (float& logit : logits) logit = scale * rng.Normal();
  return logits;
}

std::vector<double> Softmax(const std::vector<float>& logits) {
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> p;
  double total = 0;
  for (const float logit : logits) {
    p.push_back(std::exp(static_cast<double>(logit) - top));
    total += p.back();
  }
  for (double& x : p) x /= total;
  return p;
}

// A real vocabulary: bytes and pairs of letters.
const Tokenizer& TinyTokenizer() {
  static const testing_support::TinyModelFile file;
  static const auto tokenizer = Tokenizer::Load(file.Path());
  VC_CHECK(tokenizer.has_value());
  return **tokenizer;
}

TEST(Filters, PassThroughOnlyWhenNothingIsAsked) {
  EXPECT_TRUE(Make({}, 10)->IsPassThrough());
  EXPECT_TRUE(Make({.repeat_penalty = 2.0f, .penalty_last_n = 0}, 10)->IsPassThrough());
  EXPECT_FALSE(Make({.top_k = 1}, 10)->IsPassThrough());
  EXPECT_FALSE(Make({.top_p = 0.9f}, 10)->IsPassThrough());
  EXPECT_FALSE(Make({.min_p = 0.1f}, 10)->IsPassThrough());
  EXPECT_FALSE(Make({.repeat_penalty = 1.1f}, 10)->IsPassThrough());
  EXPECT_FALSE(Make({.presence_penalty = 0.1f}, 10)->IsPassThrough());
  EXPECT_FALSE(Make({.frequency_penalty = 0.1f}, 10)->IsPassThrough());
  EXPECT_FALSE(Make({.typical_p = 0.9f}, 10)->IsPassThrough());
  EXPECT_FALSE(Make({.top_n_sigma = 1.0f}, 10)->IsPassThrough());
  EXPECT_FALSE(Make({.dry_multiplier = 1.0f, .dry_breakers = {}}, 10)->IsPassThrough());
  EXPECT_TRUE(Make({.dry_multiplier = 1.0f, .dry_last_n = 0}, 10)->IsPassThrough());
  EXPECT_FALSE(Make({.grammar = "root ::= .*"}, TinyTokenizer())->IsPassThrough());
  EXPECT_FALSE(Make({.logit_bias = {{TokenId{1}, 1.0f}}}, 10)->IsPassThrough());
}

size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t n_pages = 0;
  file >> n_pages >> n_pages;
  return n_pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// libllama fills a ring of the window's length at once. A log may name any length.
TEST(Filters, WindowsTakeNoMoreMemoryThanTheContext) {
  constexpr int kHuge = 1 << 26;
  const size_t before = ResidentBytes();
  const auto penalties = Make({.repeat_penalty = 2.0f, .penalty_last_n = kHuge}, 10);
  const auto dry = Make({.dry_multiplier = 1.0f, .dry_last_n = kHuge, .dry_breakers = {}}, 10);
  EXPECT_LT(ResidentBytes(), before + (size_t{64} << 20));
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
  const auto filters = Make({.repeat_penalty = 2.0f,
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
  const auto filters = Make({.presence_penalty = 1.0f}, 3);
  filters->Accept(TokenId{2});
  const auto clone = filters->Clone();
  EXPECT_EQ(Apply(*clone, logits), Apply(*filters, logits));
  clone->Accept(TokenId{1});
  EXPECT_THAT(Apply(*clone, logits), ElementsAre(Pair(0, 1.0f), Pair(1, 1.0f), Pair(2, 2.0f)));
  EXPECT_THAT(Apply(*filters, logits), ElementsAre(Pair(0, 1.0f), Pair(1, 2.0f), Pair(2, 2.0f)));
  const auto unpenalised = Make({}, 3)->Clone();
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

// Meister et al., "Locally Typical Sampling": the smallest set of tokens whose information is
// closest to the expected one, and whose probabilities reach p.
PROPERTY(Filters, TypicalKeepsTheLeastSurprisingOfSurprises, 100) {
  const std::vector<float> logits = RandomLogits(rng, 1, 500);
  const auto typical_p = static_cast<float>(0.05 + 0.9 * rng.Unit());
  const auto kept = Apply({.typical_p = typical_p}, logits);
  ASSERT_FALSE(kept.empty());
  const std::vector<double> p = Softmax(logits);
  double entropy = 0;
  for (const double x : p) entropy -= x > 0 ? x * std::log(x) : 0;
  double mass = 0;
  double farthest_kept = 0;
  double nearest_dropped = INFINITY;
  double mass_of_farthest = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double distance = std::abs(-std::log(p[i]) - entropy);
    if (!kept.contains(static_cast<int>(i))) {
      nearest_dropped = std::min(nearest_dropped, distance);
      continue;
    }
    EXPECT_EQ(kept.at(static_cast<int>(i)), logits[i]);
    mass += p[i];
    if (distance < farthest_kept) continue;
    farthest_kept = distance;
    mass_of_farthest = p[i];
  }
  EXPECT_LE(farthest_kept, nearest_dropped + 1e-3);
  EXPECT_GE(mass, static_cast<double>(typical_p) - 1e-4);
  EXPECT_LE(mass - mass_of_farthest, static_cast<double>(typical_p) + 1e-4);
}

// Probabilities that F32 cannot hold, beside one that it can.
TEST(Filters, TypicalBearsTokensThatCannotHappen) {
  EXPECT_THAT(Apply({.typical_p = 0.9f}, {0, 500, -500, -30000}), ElementsAre(Pair(1, 500.0f)));
  EXPECT_THAT(Apply({.typical_p = 0.9f, .logit_bias = {{TokenId{1}, -INFINITY}}}, {0, 1}),
              ElementsAre(Pair(0, 0.0f)));
}

// Tang et al., "Top-nσ": logits within n standard deviations of the highest.
PROPERTY(Filters, TopNSigmaKeepsWhatIsNearTheHighest, 100) {
  const std::vector<float> logits = RandomLogits(rng, 1, 500);
  const auto n_sigma = static_cast<float>(0.2 + 2 * rng.Unit());
  const auto kept = Apply({.top_n_sigma = n_sigma}, logits);
  double mean = 0;
  for (const float logit : logits) mean += static_cast<double>(logit);
  mean /= static_cast<double>(logits.size());
  double variance = 0;
  for (const float logit : logits) variance += std::pow(static_cast<double>(logit) - mean, 2);
  const double sigma = std::sqrt(variance / static_cast<double>(logits.size()));
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  const double least = top - static_cast<double>(n_sigma) * sigma;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double logit = static_cast<double>(logits[i]);
    if (std::abs(logit - least) < 1e-3) continue;
    ASSERT_EQ(kept.contains(static_cast<int>(i)), logit > least) << i;
  }
}

PROPERTY(Filters, MinPKeepsAShareOfTheLikeliest, 100) {
  const std::vector<float> logits = RandomLogits(rng, 1, 500);
  const auto min_p = static_cast<float>(0.001 + 0.9 * rng.Unit());
  const auto kept = Apply({.min_p = min_p}, logits);
  const std::vector<double> p = Softmax(logits);
  const double least = static_cast<double>(min_p) * *std::max_element(p.begin(), p.end());
  for (size_t i = 0; i < p.size(); ++i) {
    if (std::abs(p[i] / least - 1) < 1e-4) continue;
    ASSERT_EQ(kept.contains(static_cast<int>(i)), p[i] > least) << i;
  }
}

// A sequence in which much comes again.
std::vector<TokenId> RandomSequence(Rng& rng, int n_tokens, int n_used) {
  std::vector<TokenId> tokens;
  while (static_cast<int>(tokens.size()) < n_tokens) {
    if (tokens.size() > 5 && rng.In(0, 3) == 0) {
      const auto begin = static_cast<size_t>(rng.In(0, static_cast<int>(tokens.size()) - 1));
      const size_t n = std::min(tokens.size() - begin, static_cast<size_t>(rng.In(1, 8)));
      for (size_t i = 0; i < n; ++i) tokens.push_back(tokens[begin + i]);
    } else {
      tokens.emplace_back(rng.In('a', 'a' + n_used - 1));
    }
  }
  return tokens;
}

std::span<const TokenId> LastOf(const std::vector<TokenId>& tokens, int last_n) {
  const size_t n = last_n == -1 ? kContext : static_cast<size_t>(last_n);
  return std::span(tokens).last(std::min(n, tokens.size()));
}

// Keskar et al., "CTRL", as llama.cpp has it (a negative logit is multiplied), and OpenAI's
// presence and frequency penalties.
PROPERTY(Filters, PenaltiesAreThoseOfTheWindow, 60) {
  const auto tokens = RandomSequence(rng, rng.In(0, 150), 9);
  const std::vector<float> logits = RandomLogits(rng, 130, 130);
  const FilterParams params{.repeat_penalty = static_cast<float>(0.5 + rng.Unit()),
                            .presence_penalty = rng.Normal(),
                            .frequency_penalty = rng.Normal(),
                            .penalty_last_n = rng.In(0, 3) == 0 ? -1 : rng.In(1, 80)};
  const auto filters = Make(params, 130);
  for (size_t i = 0; i < tokens.size(); ++i) {
    i % 2 == 0 ? filters->AcceptPrompt(tokens[i]) : filters->Accept(tokens[i]);
  }
  const auto kept = Apply(*filters, logits);
  const auto window = LastOf(tokens, params.penalty_last_n);
  for (int id = 0; id < 130; ++id) {
    const auto n_uses = static_cast<float>(std::count(window.begin(), window.end(), TokenId{id}));
    float expected = logits[static_cast<size_t>(id)];
    if (n_uses > 0) {
      expected *= expected <= 0 ? params.repeat_penalty : 1 / params.repeat_penalty;
      expected -= n_uses * params.frequency_penalty + params.presence_penalty;
    }
    ASSERT_NEAR(kept.at(id), expected, 1e-4) << id;
  }
}

// p-e-w, "DRY: A modern repetition penalty": a token is penalised if with it the sequence at the
// end would have occurred before; sequences do not reach over breakers, and breakers are not
// penalised.
PROPERTY(Filters, DryIsAgainstWhatContinuesARepetition, 100) {
  const auto tokens = RandomSequence(rng, rng.In(0, 150), rng.In(2, 9));
  FilterParams params{.dry_multiplier = 0.8f,
                      .dry_base = 1.5f,
                      .dry_allowed_length = rng.In(1, 4),
                      .dry_last_n = rng.In(0, 3) == 0 ? -1 : rng.In(1, 120),
                      .dry_breakers = {}};
  if (rng.In(0, 1) == 0) params.dry_breakers = {"b"};
  const Tokenizer& tokenizer = TinyTokenizer();
  const auto is_breaker = [&](TokenId token) {
    return !params.dry_breakers.empty() && tokenizer.Piece(token).find('b') != std::string::npos;
  };
  const auto filters = Make(params, tokenizer);
  for (const TokenId token : tokens) filters->Accept(token);
  const std::vector<float> logits(static_cast<size_t>(tokenizer.VocabSize()), 1.0f);
  const auto kept = Apply(*filters, logits);

  const auto window = LastOf(tokens, params.dry_last_n);
  const size_t n = window.size();
  size_t limit = 0;  // tokens at the end without a breaker
  while (limit < n && !is_breaker(window[n - 1 - limit])) ++limit;
  std::map<int, size_t> longest;
  for (size_t next = 1; next < n; ++next) {
    size_t length = 0;
    while (length < std::min(next, limit) && window[next - 1 - length] == window[n - 1 - length])
      ++length;
    size_t& best = longest[window[next].value];
    best = std::max(best, length);
  }
  const auto allowed = static_cast<size_t>(params.dry_allowed_length);
  for (int id = 0; id < tokenizer.VocabSize(); ++id) {
    const auto found = longest.find(id);
    const size_t length = found == longest.end() ? 0 : found->second;
    float expected = 1.0f;
    if (length >= allowed && !is_breaker(TokenId{id})) {
      expected -= 0.8f * std::pow(1.5f, static_cast<float>(length - allowed));
    }
    ASSERT_NEAR(kept.at(id), expected, std::abs(expected) * 1e-5f + 1e-5f) << id;
  }
}

TEST(Filters, NothingIsLeftWhenBiasesForbidAll) {
  EXPECT_TRUE(Apply({.top_k = 1,
                     .top_p = 0.5f,
                     .min_p = 0.1f,
                     .typical_p = 0.5f,
                     .top_n_sigma = 1.0f,
                     .logit_bias = {{TokenId{0}, -INFINITY}, {TokenId{1}, -INFINITY}}},
                    {1, 2})
                  .empty());
}

TEST(Filters, PenaltiesThatOverflowStayNumbers) {
  const auto kept = Apply({.top_p = 0.9f,
                           .presence_penalty = 0.0f,
                           .logit_bias = {{TokenId{0}, 3e38f}, {TokenId{0}, 3e38f}}},
                          {3e38f, 2});
  EXPECT_THAT(kept, ElementsAre(Pair(0, std::numeric_limits<float>::max())));
}

TEST(Filters, TheGrammarLooksAtTheAnswerOnly) {
  const auto filters = Make({.grammar = "root ::= \"ab\" [0-9]"}, TinyTokenizer());
  const std::vector<float> logits(static_cast<size_t>(TinyTokenizer().VocabSize()), 0.0f);
  filters->AcceptPrompt(TokenId{'x'});
  EXPECT_TRUE(Apply(*filters, logits).contains('a'));
  EXPECT_FALSE(Apply(*filters, logits).contains('b'));
  filters->Accept(TokenId{'a'});
  EXPECT_THAT(Apply(*filters, logits), ElementsAre(Pair('b', 0.0f)));
  const auto clone = filters->Clone();
  clone->Accept(TokenId{'b'});
  EXPECT_EQ(Apply(*clone, logits).size(), 10u);
  EXPECT_THAT(Apply(*filters, logits), ElementsAre(Pair('b', 0.0f)));
}

TEST(Filters, AGrammarThatIsWrongIsRefused) {
  const auto filters = Filters::Make({.grammar = "root ::= ("}, TinyTokenizer(), kContext);
  ASSERT_FALSE(filters.has_value());
  EXPECT_EQ(filters.error().code, ErrorCode::kInvalidArgument);
}

// Few logits, so that many are equal.
PROPERTY(Filters, AskingTheGrammarByLikelihoodIsTopKOfWhatItAllows, 40) {
  const Tokenizer& tokenizer = TinyTokenizer();
  std::vector<float> logits(static_cast<size_t>(tokenizer.VocabSize()));
  for (float& logit : logits) logit = static_cast<float>(rng.In(0, 20));
  const std::string grammars[] = {"root ::= [a-m]*", "root ::= .*", "root ::= \"th\" [e]*",
                                  "root ::= \"\""};
  FilterParams params{.grammar = grammars[rng.In(0, 3)]};
  std::vector<std::pair<float, int>> expected;  // by logit, lowest id first
  for (const auto& [id, logit] : Apply(*Make(params, tokenizer), logits)) {
    expected.emplace_back(-logit, id);
  }
  std::sort(expected.begin(), expected.end());
  params.top_k = rng.In(1, 300);
  if (expected.size() > static_cast<size_t>(params.top_k)) {
    expected.resize(static_cast<size_t>(params.top_k));
  }
  const auto kept = Apply(*Make(params, tokenizer), logits);
  EXPECT_EQ(kept.size(), expected.size());
  for (const auto& [logit, id] : expected) EXPECT_TRUE(kept.contains(id)) << id;
}

}  // namespace
}  // namespace vericache::model
