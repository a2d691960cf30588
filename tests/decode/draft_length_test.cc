// Goal: auto drafts much when drafting wins, little or not at all when it loses, comes back when
// it begins to win, and never costs more than a few percent (S20).
// Method: a simulated machine (times of draft rows, plain steps and verifies, a rule of
// acceptance) that plays rounds until a number of tokens is reached.

#include "decode/draft_length.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace vericache::decode {
namespace {

// Times in plain steps.
struct Machine {
  double draft_row = 0.3;
  double verified_row = 0.2;
  double noise = 0;  // relative
  // Tokens accepted of n drafted when `n_tokens` are committed.
  std::function<int(int n, int n_tokens)> accept;
};

struct Outcome {
  int n_tokens = 0;
  double seconds = 0;
  int n_drafted = 0;
  int n_longest = 0;
  double Speedup() const { return n_tokens / seconds; }
};

Outcome Play(DraftLength& length, const Machine& machine, int n_tokens, int n_already = 0) {
  std::mt19937_64 random(9);
  const auto jitter = [&] {
    return 1 + machine.noise * (static_cast<double>(random() % 1000) / 500.0 - 1.0);
  };
  Outcome outcome;
  while (outcome.n_tokens < n_tokens) {
    const int n = length.Next();
    RoundTimes round{.n_drafted = n};
    round.n_accepted = n == 0 ? 0 : machine.accept(n, n_already + outcome.n_tokens);
    round.draft_s = n * machine.draft_row * jitter();
    round.verify_s = (1 + n * machine.verified_row) * jitter();
    length.Observe(round);
    outcome.n_tokens += round.n_accepted + 1;
    outcome.seconds += round.draft_s + round.verify_s;
    outcome.n_drafted += n;
    outcome.n_longest = std::max(outcome.n_longest, n);
  }
  return outcome;
}

int AcceptAll(int n, int) { return n; }
int AcceptNone(int, int) { return 0; }

// Each token accepted with probability p while those before it are.
std::function<int(int, int)> AcceptEach(double p) {
  auto random = std::make_shared<std::mt19937_64>(11);
  return [random, p](int n, int) {
    int accepted = 0;
    while (accepted < n && static_cast<double>((*random)() % 100000) < p * 100000) ++accepted;
    return accepted;
  };
}

TEST(DraftLength, FixedIsFixed) {
  DraftLength length = DraftLength::Fixed(7);
  EXPECT_EQ(length.Next(), 7);
  Play(length, {.accept = AcceptNone}, 100);
  EXPECT_EQ(length.Next(), 7);
  EXPECT_TRUE(length.IsFixed());
}

TEST(DraftLength, MeasuresPlainDecodingFirst) {
  DraftLength length = DraftLength::Auto(64);
  EXPECT_EQ(length.Next(), 0);
}

TEST(DraftLength, PerfectDraftsGrowLong) {
  DraftLength length = DraftLength::Auto(64);
  const Outcome outcome = Play(length, {.accept = AcceptAll}, 1000);
  EXPECT_EQ(outcome.n_longest, 64);
  EXPECT_GT(outcome.Speedup(), 1.7);  // the limit of these times is 65 / 33 = 1.97
}

TEST(DraftLength, HostileDraftsCostAFewPercent) {
  for (const double draft_row : {0.2, 0.5, 1.0, 1.5}) {
    for (const double verified_row : {0.02, 0.2, 0.5}) {
      for (const int n_tokens : {128, 256, 1024, 8192}) {
        DraftLength length = DraftLength::Auto(64);
        const Outcome outcome = Play(
            length, {.draft_row = draft_row, .verified_row = verified_row, .accept = AcceptNone},
            n_tokens);
        EXPECT_GT(outcome.Speedup(), n_tokens < 256 ? 0.94 : 0.96)
            << draft_row << " " << verified_row << " " << n_tokens;
        EXPECT_GT(outcome.n_drafted, 0);
      }
    }
  }
}

TEST(DraftLength, AttemptsBecomeRarer) {
  DraftLength length = DraftLength::Auto(64);
  int n_attempts = 0;
  const auto count_and_refuse = [&](int, int) {
    ++n_attempts;
    return 0;
  };
  Play(length, {.accept = count_and_refuse}, 1000);
  EXPECT_GE(n_attempts, 4);
  const int n_before = n_attempts;
  Play(length, {.accept = count_and_refuse}, 10000);
  EXPECT_GE(n_attempts, n_before + 3);
  EXPECT_LE(n_attempts, n_before + 8);
}

TEST(DraftLength, SlowDraftsAreGivenUpThoughAllAreAccepted) {
  DraftLength length = DraftLength::Auto(64);
  const Outcome outcome = Play(length, {.draft_row = 1.0, .accept = AcceptAll}, 2000);
  EXPECT_GT(outcome.Speedup(), 0.98);
  EXPECT_LT(outcome.n_drafted, 100);
}

TEST(DraftLength, SlowVerifiesAreGivenUp) {
  DraftLength length = DraftLength::Auto(64);
  const Outcome outcome =
      Play(length, {.draft_row = 0.3, .verified_row = 1.0, .accept = AcceptEach(0.8)}, 2000);
  EXPECT_GT(outcome.Speedup(), 0.97);
}

TEST(DraftLength, ModerateAcceptanceGivesModerateLengths) {
  for (const double p : {0.5, 0.7, 0.8, 0.9, 0.95, 0.98}) {
    // The best fixed length on the same machine.
    double best = 0;
    for (int n = 0; n <= 64; ++n) {
      DraftLength fixed = DraftLength::Fixed(n);
      best = std::max(best, Play(fixed, {.accept = AcceptEach(p)}, 4000).Speedup());
    }
    DraftLength length = DraftLength::Auto(64);
    const Outcome outcome = Play(length, {.noise = 0.1, .accept = AcceptEach(p)}, 4000);
    EXPECT_GT(outcome.Speedup(), 0.90 * best) << p;
    EXPECT_GT(outcome.Speedup(), 0.97) << p;
  }
}

TEST(DraftLength, ComesBackWhenDraftsBecomeGood) {
  DraftLength length = DraftLength::Auto(64);
  Play(length, {.accept = AcceptNone}, 1000);
  const Outcome outcome = Play(length, {.accept = AcceptAll}, 4000);
  EXPECT_GT(outcome.Speedup(), 1.4);
}

// A start that was estimated too dear is asked about again: no answer decides for the next ones.
TEST(DraftLength, AsksAgainAfterADeclinedStart) {
  DraftLength length = DraftLength::Auto(64);
  length.Observe({.verify_s = 1});
  length.Expect({.draft = 2, .verified = 2});
  length.Observe({.verify_s = 1});
  EXPECT_EQ(length.Next(), 0);
  EXPECT_GT(Play(length, {.accept = AcceptAll}, 200).n_drafted, 0);
}

TEST(DraftLength, LosesLittleWhenDraftsBecomeBad) {
  DraftLength length = DraftLength::Auto(64);
  Play(length, {.accept = AcceptAll}, 1000);
  const Outcome outcome = Play(length, {.accept = AcceptNone}, 1000);
  EXPECT_GT(outcome.Speedup(), 0.92);  // one long draft is lost, out of what was gained before
}

TEST(DraftLength, SurvivesOneStalledStep) {
  DraftLength length = DraftLength::Auto(64);
  length.Observe({.verify_s = 1.0});
  length.Observe({.verify_s = 50.0});
  const Outcome outcome = Play(length, {.accept = AcceptAll}, 1000);
  EXPECT_GT(outcome.Speedup(), 1.5);
}

TEST(DraftLength, CountsTheCompressions) {
  // Drafting gains a third per token, compressing eats half a step per token.
  DraftLength length = DraftLength::Auto(64);
  int n_drafted = 0;
  int n_tokens = 0;
  while (n_tokens < 2000) {
    const int n = length.Next();
    length.Observe({.n_drafted = n,
                    .n_accepted = n,
                    .draft_s = 0.4 * n,
                    .verify_s = 1 + 0.3 * n,
                    .extra_s = n == 0 ? 0 : 0.5 * (n + 1)});
    n_tokens += n + 1;
    n_drafted += n;
  }
  EXPECT_LT(n_drafted, 200);
}

TEST(DraftLength, StartsOnlyWhereTheStartIsEarnedBack) {
  DraftLength length = DraftLength::Auto(64);
  Play(length, {.accept = AcceptNone}, 2);  // plain steps of 1 s
  length.Expect({.draft = 0.25, .verified = 0.1});
  EXPECT_TRUE(length.PaysToStart(40, 256));
  EXPECT_FALSE(length.PaysToStart(40, 60));
  EXPECT_FALSE(length.PaysToStart(200, 256));
  length.Expect({.draft = 0.7, .verified = 0.4});
  EXPECT_FALSE(length.PaysToStart(1, 100000));
}

// Drafts as well accepted as those of good methods would gain a percent, those a first draft hopes
// for nothing: the start would be paid and no draft begun.
TEST(DraftLength, StartsNothingThatItWouldNotDraft) {
  DraftLength length = DraftLength::Auto(64);
  Play(length, {.accept = AcceptNone}, 2);
  int n_drafted = 0;
  for (int i = 0; i < 400; ++i) {
    const double draft = 0.4 + 0.001 * i;
    length.Expect({.draft = draft, .verified = 0.2});
    n_drafted += length.PaysToStart(1, 100000) ? 1 : 0;
    EXPECT_TRUE(!length.PaysToStart(1, 100000) || length.Next() > 0) << draft;
  }
  // The range begins where both say yes and ends where both say no, so it holds where they part.
  EXPECT_GT(n_drafted, 0);
  EXPECT_LT(n_drafted, 400);
}

TEST(DraftLength, NeverExceedsItsMaximum) {
  for (const int max : {0, 1, 5}) {
    DraftLength length = DraftLength::Auto(max);
    EXPECT_LE(Play(length, {.draft_row = 0.01, .accept = AcceptAll}, 500).n_longest, max);
  }
}

// ---- looked-up proposals ------------------------------------------------------------------------

// Plays proposals that rest on matches of given lengths; returns the time in plain steps a token.
struct LookupRound {
  int n_matched;
  int n_good;  // tokens that would be accepted
};
Outcome PlayLookups(DraftLength& length, int n_tokens,
                    const std::function<LookupRound(int n_tokens)>& next, double row = 0.2) {
  Outcome outcome;
  while (outcome.n_tokens < n_tokens) {
    const LookupRound offered = next(outcome.n_tokens);
    RoundTimes round{.n_matched = offered.n_matched, .n_drafted = length.Next(offered.n_matched)};
    round.n_accepted = std::min(round.n_drafted, offered.n_good);
    round.verify_s = 1 + row * round.n_drafted;
    length.Observe(round);
    outcome.n_tokens += round.n_accepted + 1;
    outcome.seconds += round.verify_s;
    outcome.n_drafted += round.n_drafted;
    outcome.n_longest = std::max(outcome.n_longest, round.n_drafted);
  }
  return outcome;
}

TEST(DraftLength, LongMatchesAreFollowedFurtherThanShortOnes) {
  DraftLength length = DraftLength::AutoLookup(64);
  EXPECT_EQ(length.Next(20), 0);  // plain steps first
  length.Observe({.verify_s = 1});
  length.Observe({.verify_s = 1});
  EXPECT_GT(length.Next(2), 0);
  EXPECT_GT(length.Next(8), length.Next(2));
  EXPECT_GT(length.Next(20), length.Next(8));
}

TEST(DraftLength, FailedLookupsCostAFewPercent) {
  for (const int n_tokens : {128, 1024, 8192}) {
    DraftLength length = DraftLength::AutoLookup(64);
    const Outcome outcome = PlayLookups(
        length, n_tokens, [](int n) { return LookupRound{.n_matched = 2 + n % 30, .n_good = 0}; });
    EXPECT_GT(outcome.Speedup(), n_tokens < 256 ? 0.94 : 0.97) << n_tokens;
    EXPECT_GT(outcome.n_drafted, 0);
  }
}

// Short matches that fail say nothing about long ones that hold.
TEST(DraftLength, EachKindOfMatchIsJudgedByItself) {
  DraftLength length = DraftLength::AutoLookup(64);
  const Outcome outcome = PlayLookups(length, 4000, [](int n) {
    return n / 20 % 2 == 0 ? LookupRound{.n_matched = 2, .n_good = 0}
                           : LookupRound{.n_matched = 20, .n_good = 20};
  });
  EXPECT_GT(outcome.Speedup(), 1.3);  // half of the tokens, about three times as fast
}

TEST(DraftLength, LookupsComeBackWhenTheyBecomeGood) {
  DraftLength length = DraftLength::AutoLookup(64);
  PlayLookups(length, 1000, [](int) { return LookupRound{.n_matched = 20, .n_good = 0}; });
  const Outcome outcome =
      PlayLookups(length, 300, [](int) { return LookupRound{.n_matched = 20, .n_good = 64}; });
  EXPECT_GT(outcome.Speedup(), 2.0);
}

// One verify met by a stall of the machine: neither the time lost nor the cost of its rows may keep
// lookups from the rest of the answer.
TEST(DraftLength, LookupsSurviveAStalledVerify) {
  DraftLength length = DraftLength::AutoLookup(64);
  for (int i = 0; i < 2; ++i) length.Observe({.verify_s = 1});
  length.Observe({.n_matched = 20, .n_drafted = 15, .n_accepted = 0, .verify_s = 60});
  const Outcome outcome =
      PlayLookups(length, 200, [](int) { return LookupRound{.n_matched = 20, .n_good = 64}; });
  EXPECT_GT(outcome.Speedup(), 2.0);
}

// However dear a row is, and however dear the next probe turns out to be.
TEST(DraftLength, LookupsOfDearRowsCostAFewPercent) {
  for (const double row : {0.5, 1.0, 2.0, 4.0}) {
    for (const bool is_mixed : {false, true}) {
      DraftLength length = DraftLength::AutoLookup(64);
      const Outcome outcome = PlayLookups(
          length, 4000,
          [&](int n) {
            return LookupRound{.n_matched = 30, .n_good = is_mixed && n / 40 % 2 == 0 ? 3 : 0};
          },
          row);
      EXPECT_GT(outcome.Speedup(), 0.95) << row << (is_mixed ? " mixed" : " rejected");
    }
  }
}

// Rows were dear for a while, when others used the machine.
TEST(DraftLength, LookupsComeBackWhenRowsBecomeCheap) {
  DraftLength length = DraftLength::AutoLookup(64);
  for (int i = 0; i < 2; ++i) length.Observe({.verify_s = 1});
  for (int i = 0; i < 5; ++i)
    length.Observe({.n_matched = 20, .n_drafted = 2, .n_accepted = 2, .verify_s = 4});
  EXPECT_EQ(length.Next(20), 0);
  const Outcome outcome =
      PlayLookups(length, 300, [](int) { return LookupRound{.n_matched = 20, .n_good = 64}; });
  EXPECT_GT(outcome.Speedup(), 2.0);
}

TEST(RecentMedian, IsTheMiddleOfTheLastFive) {
  RecentMedian median;
  median.Add(5);
  EXPECT_EQ(median.Value(), 5);
  for (const double value : {1.0, 9.0}) median.Add(value);
  EXPECT_EQ(median.Value(), 5);
  for (const double value : {2.0, 2.0, 2.0}) median.Add(value);  // 5 has left
  EXPECT_EQ(median.Value(), 2);
}

}  // namespace
}  // namespace vericache::decode
