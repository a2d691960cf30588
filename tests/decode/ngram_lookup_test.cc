// Goal: a proposal is what its definition says: what followed the newest place of the longest
// match, and then itself.
// Method: a naive search over the definition is the oracle, on random sequences over few
// symbols, where matches of every length abound; examples say the rest.

#include "decode/ngram_lookup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "tests/support/property.h"

namespace vericache::decode {
namespace {

using testing_support::Rng;

std::vector<TokenId> Tokens(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char c : text) tokens.emplace_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string Text(const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : tokens) text += static_cast<char>(token.value);
  return text;
}

NgramLookup LookupOf(const std::vector<TokenId>& tokens, NgramRange range = {}) {
  NgramLookup lookup(range);
  for (const TokenId token : tokens) lookup.Append(token);
  return lookup;
}

// Tokens that agree before `end` and before the end of `sequence`, at most `most`.
int CountMatched(const std::vector<TokenId>& sequence, int end, int most) {
  int n = 0;
  const int size = static_cast<int>(sequence.size());
  while (n < most && n < end &&
         sequence[static_cast<size_t>(end - 1 - n)] == sequence[static_cast<size_t>(size - 1 - n)])
    ++n;
  return n;
}

// The definition, word for word.
NgramProposal NaivePropose(const std::vector<TokenId>& committed,
                           const std::vector<TokenId>& drafted, NgramRange range, int n_tokens) {
  std::vector<TokenId> sequence = committed;
  sequence.insert(sequence.end(), drafted.begin(), drafted.end());
  int best = 0;
  int best_end = 0;
  for (int end = 1; end < static_cast<int>(committed.size()); ++end) {
    const int n = CountMatched(sequence, end, range.max_match);
    if (n >= range.min_match && n >= best) {
      best = n;
      best_end = end;
    }
  }
  if (best == 0) return {};
  NgramProposal proposal;
  proposal.n_matched = CountMatched(sequence, best_end, NgramLookup::kMaxCounted);
  for (int i = 0; i < n_tokens; ++i) {
    proposal.tokens.push_back(sequence[static_cast<size_t>(best_end + i)]);
    sequence.push_back(proposal.tokens.back());
  }
  return proposal;
}

TEST(NgramLookup, ProposesByItsDefinition) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    const int n_symbols = rng.In(1, 6);
    const int min_match = rng.In(1, 4);
    const NgramRange range{.min_match = min_match, .max_match = min_match + rng.In(0, 8)};
    NgramLookup lookup(range);
    std::vector<TokenId> committed;
    const auto symbol = [&] { return TokenId{rng.In(0, n_symbols)}; };
    for (int i = 0; i < 300; ++i) {
      std::vector<TokenId> drafted;
      for (int n = rng.In(0, 5) * (i % 2); n > 0; --n) drafted.push_back(symbol());
      const int n_tokens = rng.In(0, 12);
      const NgramProposal expected = NaivePropose(committed, drafted, range, n_tokens);
      const NgramProposal proposal = lookup.Propose(drafted, n_tokens);
      ASSERT_EQ(proposal.tokens, expected.tokens) << "seed " << seed << " token " << i;
      ASSERT_EQ(proposal.n_matched, expected.n_matched) << "seed " << seed << " token " << i;
      committed.push_back(symbol());
      lookup.Append(committed.back());
    }
  }
}

TEST(NgramLookup, PrefersTheLongestMatchThenTheNewest) {
  const auto propose = [](std::string_view text) {
    return Text(LookupOf(Tokens(text), {.min_match = 2, .max_match = 4}).Propose({}, 1).tokens);
  };
  EXPECT_EQ(propose("xabcd1  yabcd2  abcd"), "2");  // both match four: the newer
  EXPECT_EQ(propose("xabcd1  cd2  abcd"), "1");     // the longer
  EXPECT_EQ(propose("d1 2 d"), "");                 // one token is too short
}

TEST(NgramLookup, ContinuesWhatRepeatsForAsLongAsAsked) {
  const NgramLookup lookup = LookupOf(Tokens("so on and on and"));
  EXPECT_EQ(Text(lookup.Propose({}, 20).tokens), " on and on and on an");
  EXPECT_EQ(lookup.TokenCount(), 16);
}

TEST(NgramLookup, ProposesNothingWithoutAMatch) {
  EXPECT_TRUE(NgramLookup().Propose({}, 5).tokens.empty());
  EXPECT_TRUE(LookupOf(Tokens("a")).Propose({}, 5).tokens.empty());
  EXPECT_TRUE(LookupOf(Tokens("abcdefg")).Propose({}, 5).tokens.empty());
  EXPECT_EQ(LookupOf(Tokens("abcdefg")).Propose({}, 5).n_matched, 0);
}

TEST(NgramLookup, FollowsDraftedTokensWithoutKeepingThem) {
  const NgramLookup lookup = LookupOf(Tokens("the cat sat. the dog ran. the "));
  EXPECT_EQ(Text(lookup.Propose(Tokens("ca"), 6).tokens), "t sat.");
  EXPECT_EQ(Text(lookup.Propose(Tokens("do"), 6).tokens), "g ran.");
  EXPECT_EQ(Text(lookup.Propose({}, 6).tokens), "dog ra");
}

}  // namespace
}  // namespace vericache::decode
