#include "decode/draft_length.h"

#include <algorithm>

#include "base/check.h"

namespace vericache::decode {
namespace {

// A hopeful prior that one rejection outweighs: a first draft is a few tokens long, a second one
// follows the evidence.
constexpr double kAcceptedPrior = 0.9;
constexpr double kRejectedPrior = 0.1;
// Of drafted tokens that follow accepted ones: methods that keep a quarter reach .95 to .98 at
// temperature 0 (docs/compressors.md), .9 at .8.
constexpr double kTypicalAcceptance = 0.93;
// Looked-up tokens, by kind of match: the longer what agrees before them, the likelier they are.
constexpr double kMatchPriors[] = {0.6, 0.75, 0.85, 0.93};
constexpr double kMatchPriorWeight = 2;  // rounds
// What a plain step forgets of the evidence on matches: proposals that failed at one place of the
// text are tried again some dozens of tokens later.
constexpr double kForget = 0.03;
constexpr double kDecay = 0.9;  // of the evidence, per round: a window of about ten rounds

constexpr int kFirstPlainSteps = 2;   // a measure to compare with
constexpr int kPlainEvery = 64;       // rounds after which the measure is taken anew
constexpr double kWorthwhile = 1.03;  // gain over plain decoding below which drafting rests
constexpr int kMinBackoff = 64;       // plain steps
constexpr int kMaxBackoff = 2048;
constexpr double kLostShare = 0.02;       // of all time
constexpr double kLostPlainSteps = 4;     // allowance of the first attempts
constexpr double kBankedPlainSteps = 32;  // gains that later losses may use up
// A round over this many times what was expected met a stall of the machine, if costs were measured
// or it is the first: it is charged what was expected, or one stall would keep drafts from hundreds
// of tokens. Right behind it rounds are charged whole.
constexpr double kStall = 3;
constexpr int kStaleCosts = 16;  // plain steps in a row after which measured row costs are too old

}  // namespace

void RecentMedian::Add(double value) {
  values_[static_cast<size_t>(next_)] = value;
  next_ = (next_ + 1) % kKept;
  n_ = std::min(n_ + 1, kKept);
}

double RecentMedian::Value() const {
  VC_CHECK(n_ > 0, "median of nothing");
  std::array<double, kKept> sorted = values_;
  // What is not there sorts last, so that the whole array, of a size the compiler knows, is sorted.
  std::fill(sorted.begin() + n_, sorted.end(), std::numeric_limits<double>::infinity());
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>((n_ - 1) / 2)];
}

DraftLength DraftLength::Fixed(int n) {
  VC_CHECK(n >= 0, "n = {}", n);
  DraftLength length;
  length.fixed_ = n;
  return length;
}

DraftLength DraftLength::Auto(int max) {
  VC_CHECK(max >= 0, "max = {}", max);
  DraftLength length;
  length.max_ = max;
  length.plain_left_ = kFirstPlainSteps;
  length.backoff_ = kMinBackoff;
  length.evidence_ = {kAcceptedPrior, kRejectedPrior};
  return length;
}

DraftLength DraftLength::AutoLookup(int max) {
  DraftLength length = Auto(max);
  length.is_lookup_ = true;
  for (int kind = 0; kind < kMatchKinds; ++kind) {
    length.match_evidence_[static_cast<size_t>(kind)] = MatchPrior(kind);
  }
  return length;
}

int DraftLength::KindOf(int n_matched) {
  if (n_matched < 4) return 0;
  if (n_matched < 8) return 1;
  return n_matched < 16 ? 2 : 3;
}

// A proposal rests on one match and stands or falls with it: one round's evidence is how far it
// went and whether it failed.
DraftLength::Evidence DraftLength::MatchPrior(int kind) {
  const double p = kMatchPriors[kind];
  return {kMatchPriorWeight * p / (1 - p), kMatchPriorWeight};
}

int DraftLength::Next(int n_matched) const {
  if (fixed_) return *fixed_;
  if (plain_left_ > 0) return 0;
  if (!is_lookup_) return Best(evidence_).n_drafted;
  return Affordable(Best(match_evidence_[static_cast<size_t>(KindOf(n_matched))]).n_drafted);
}

int DraftLength::Affordable(int n) const {
  while (n > 0 && lost_s_ + SecondsOf(n, 1) - plain_s_.Value() > LossLimit()) --n;
  return n;
}

void DraftLength::Observe(const RoundTimes& round) {
  if (fixed_) return;
  if (round.n_drafted == 0) {
    total_s_ += round.draft_s + round.verify_s + round.extra_s;
    lost_s_ += round.draft_s + round.extra_s;  // a draft that ended before its first token
    ObservePlain(round.verify_s);
  } else {
    ObserveDraft(round);
  }
}

void DraftLength::ObservePlain(double seconds) {
  plain_s_.Add(seconds);
  since_plain_ = 0;
  if (plain_left_ > 0) --plain_left_;
  if (is_lookup_) {
    // Rows that were slow in a bad moment of the machine would never be measured again.
    if (++plain_in_a_row_ >= kStaleCosts) ForgetRowCosts();
    return ForgetMatches();
  }
  if (plain_left_ > 0) return;
  // An attempt is due, unless nothing makes it look worthwhile or losses have used up their share.
  const int n = Best(evidence_).n_drafted;
  if (n == 0 || lost_s_ + SecondsOf(n, 1) - plain_s_.Value() > LossLimit()) BackOff();
}

// What comes next is a probe: nothing measured says that it is not just as dear as it turns out.
void DraftLength::ForgetRowCosts() {
  if (verified_row_s_.Count() == 0) return;
  verified_row_s_ = {};
  may_forgive_ = false;
}

void DraftLength::ForgetMatches() {
  for (int kind = 0; kind < kMatchKinds; ++kind) {
    Evidence& evidence = match_evidence_[static_cast<size_t>(kind)];
    const Evidence prior = MatchPrior(kind);
    evidence.n_accepted += kForget * (prior.n_accepted - evidence.n_accepted);
    evidence.n_rejected += kForget * (prior.n_rejected - evidence.n_rejected);
  }
}

void DraftLength::ObserveDraft(const RoundTimes& round) {
  VC_CHECK(round.n_accepted <= round.n_drafted, "{} of {} accepted", round.n_accepted,
           round.n_drafted);
  const int n_tokens = round.n_accepted + 1;
  const double plain_s = plain_s_.Value();
  const double expected_s = SecondsOf(round.n_drafted, 0);
  const double passes_s = round.draft_s + round.verify_s;
  const bool is_over = passes_s > kStall * expected_s;
  const double charged_s = (is_over && may_forgive_ ? expected_s : passes_s) + round.extra_s;
  may_forgive_ = !is_over;
  total_s_ += charged_s;
  plain_in_a_row_ = 0;
  draft_row_s_.Add(round.draft_s / round.n_drafted);
  verified_row_s_.Add(std::max(0.0, round.verify_s - plain_s) / round.n_drafted);
  extra_s_.Add(round.extra_s / n_tokens);
  Evidence& evidence =
      is_lookup_ ? match_evidence_[static_cast<size_t>(KindOf(round.n_matched))] : evidence_;
  evidence.n_accepted = kDecay * evidence.n_accepted + round.n_accepted;
  evidence.n_rejected = kDecay * evidence.n_rejected + (round.n_accepted < round.n_drafted ? 1 : 0);

  const double gained_s = plain_s * n_tokens - charged_s;
  lost_s_ = std::max(lost_s_ - gained_s, -kBankedPlainSteps * plain_s);
  if (gained_s > 0) backoff_ = kMinBackoff;

  ++since_plain_;
  if (!is_lookup_ && (lost_s_ > LossLimit() || Best(evidence_).n_drafted == 0)) {
    BackOff();
  } else if (since_plain_ >= kPlainEvery) {
    plain_left_ = 1;
  }
}

double DraftLength::LossLimit() const {
  return kLostShare * total_s_ + kLostPlainSteps * plain_s_.Value();
}

// Rests, then starts from the priors again: what failed at this place of the text, or was slow in a
// bad moment of the machine, may do better at another.
void DraftLength::BackOff() {
  plain_left_ = backoff_;
  backoff_ = std::min(backoff_ * 2, kMaxBackoff);
  evidence_ = {kAcceptedPrior, kRejectedPrior};
  expected_ = {};
  draft_row_s_ = {};
  verified_row_s_ = {};
}

double DraftLength::SecondsOf(int n_drafted, double n_tokens) const {
  const double plain_s = plain_s_.Value();
  double draft_row_s = 0;
  if (!is_lookup_) {
    draft_row_s = draft_row_s_.Count() > 0 ? draft_row_s_.Value() : expected_.draft * plain_s;
  }
  const double verified_row_s =
      verified_row_s_.Count() > 0 ? verified_row_s_.Value() : expected_.verified * plain_s;
  const double extra_s = extra_s_.Count() > 0 ? extra_s_.Value() : 0;
  return plain_s + n_drafted * (draft_row_s + verified_row_s) + n_tokens * extra_s;
}

bool DraftLength::PaysToStart(double start_s, int n_tokens) const {
  const double rate = Best({kTypicalAcceptance, 1 - kTypicalAcceptance}).rate;
  // What good methods reach may pay where the hopes of a first draft, which are lower, do not: it
  // would be compressed for nothing.
  return Next() > 0 && n_tokens * (plain_s_.Value() - 1 / rate) >= start_s;
}

DraftLength::Choice DraftLength::Best(const Evidence& evidence) const {
  const double p = evidence.Acceptance();
  Choice best{.n_drafted = 0, .rate = 1 / plain_s_.Value()};
  double least_rate = kWorthwhile * best.rate;
  double n_tokens = 1;
  double reached = 1;  // p^x: how likely all x are accepted
  for (int x = 1; x <= max_; ++x) {
    reached *= p;
    n_tokens += reached;
    const double rate = n_tokens / SecondsOf(x, n_tokens);
    if (rate > least_rate) {
      least_rate = rate;
      best = {.n_drafted = x, .rate = rate};
    }
  }
  return best;
}

}  // namespace vericache::decode
