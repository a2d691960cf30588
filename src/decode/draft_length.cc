#include "decode/draft_length.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace vericache::decode {
namespace {

// Before anything is measured, in units of a plain step (docs/benchmarks.md: a draft over a quarter
// of the KV, and a verified row).
constexpr double kDraftRowPrior = 0.5;
constexpr double kVerifiedRowPrior = 0.2;

// A hopeful prior that one rejection outweighs: a first draft is a few tokens long, a second one
// follows the evidence.
constexpr double kAcceptedPrior = 0.9;
constexpr double kRejectedPrior = 0.1;
constexpr double kDecay = 0.9;  // of the evidence, per round: a window of about ten rounds

constexpr int kFirstPlainSteps = 2;   // a measure to compare with
constexpr int kPlainEvery = 64;       // rounds after which the measure is taken anew
constexpr double kWorthwhile = 1.03;  // gain over plain decoding below which drafting rests
constexpr int kMinBackoff = 64;       // plain steps
constexpr int kMaxBackoff = 2048;
constexpr double kLostShare = 0.02;       // of all time
constexpr double kLostPlainSteps = 4;     // allowance of the first attempts
constexpr double kBankedPlainSteps = 32;  // gains that later losses may use up

// 1 + p + ... + p^x.
double ExpectedTokens(double p, int x) {
  double tokens = 1;
  double power = 1;
  for (int i = 0; i < x; ++i) tokens += power *= p;
  return tokens;
}

}  // namespace

void RecentMedian::Add(double value) {
  values_[static_cast<size_t>(next_)] = value;
  next_ = (next_ + 1) % kKept;
  n_ = std::min(n_ + 1, kKept);
}

double RecentMedian::Value() const {
  VC_CHECK(n_ > 0, "median of nothing");
  std::array<double, kKept> sorted = values_;
  const auto end = sorted.begin() + n_;
  std::sort(sorted.begin(), end);
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
  length.n_accepted_ = kAcceptedPrior;
  length.n_rejected_ = kRejectedPrior;
  return length;
}

int DraftLength::Next() const {
  if (fixed_) return *fixed_;
  if (plain_left_ > 0 || plain_s_.Count() == 0) return 0;
  return Best();
}

void DraftLength::Observe(const RoundTimes& round) {
  if (fixed_) return;
  total_s_ += round.draft_s + round.verify_s + round.extra_s;
  if (round.n_drafted == 0) {
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
  if (plain_left_ > 0 || plain_s_.Count() < kFirstPlainSteps) return;
  // An attempt is due unless nothing could make it worthwhile, or losses have used up their share.
  const bool is_affordable = lost_s_ + SecondsOf(1) - plain_s_.Value() <=
                             kLostShare * total_s_ + kLostPlainSteps * plain_s_.Value();
  if (Best() == 0 || !is_affordable) BackOff();
}

void DraftLength::ObserveDraft(const RoundTimes& round) {
  VC_CHECK(round.n_accepted <= round.n_drafted, "{} of {} accepted", round.n_accepted,
           round.n_drafted);
  draft_row_s_.Add(round.draft_s / round.n_drafted);
  if (plain_s_.Count() > 0) {
    verified_row_s_.Add(std::max(0.0, round.verify_s - plain_s_.Value()) / round.n_drafted);
    const double plain_s = plain_s_.Value();
    const double round_s = round.draft_s + round.verify_s + round.extra_s;
    lost_s_ += round_s - plain_s * (round.n_accepted + 1);
    lost_s_ = std::max(lost_s_, -kBankedPlainSteps * plain_s);
    if (round_s < plain_s * (round.n_accepted + 1)) backoff_ = kMinBackoff;
  }
  n_accepted_ = kDecay * n_accepted_ + round.n_accepted;
  n_rejected_ = kDecay * n_rejected_ + (round.n_accepted < round.n_drafted ? 1 : 0);

  ++since_plain_;
  const bool is_overdrawn =
      plain_s_.Count() > 0 && lost_s_ > kLostShare * total_s_ + kLostPlainSteps * plain_s_.Value();
  if (is_overdrawn || Best() == 0) {
    BackOff();
  } else if (since_plain_ >= kPlainEvery) {
    plain_left_ = 1;
  }
}

// Rests, then starts from the prior again: what failed at this place of the text may work at
// another.
void DraftLength::BackOff() {
  plain_left_ = backoff_;
  backoff_ = std::min(backoff_ * 2, kMaxBackoff);
  n_accepted_ = kAcceptedPrior;
  n_rejected_ = kRejectedPrior;
}

double DraftLength::SecondsOf(int n_drafted) const {
  const double plain_s = plain_s_.Value();
  const double draft_row_s =
      draft_row_s_.Count() > 0 ? draft_row_s_.Value() : kDraftRowPrior * plain_s;
  const double verified_row_s =
      verified_row_s_.Count() > 0 ? verified_row_s_.Value() : kVerifiedRowPrior * plain_s;
  return plain_s + n_drafted * (draft_row_s + verified_row_s);
}

int DraftLength::Best() const {
  if (plain_s_.Count() == 0) return 0;
  const double p = n_accepted_ / (n_accepted_ + n_rejected_);
  int best = 0;
  double best_rate = kWorthwhile / plain_s_.Value();
  for (int x = 1; x <= max_; ++x) {
    const double rate = ExpectedTokens(p, x) / SecondsOf(x);
    if (rate > best_rate) {
      best_rate = rate;
      best = x;
    }
  }
  return best;
}

}  // namespace vericache::decode
