// How many tokens to draft before the next verify: fixed, or chosen from measured times.
//
// Automatic choice maximises expected committed tokens per second. With a draft of x tokens, each
// accepted with probability p while those before it are,
//
//   tokens(x)  = 1 + p + ... + p^x              x accepted at most, and the verified one
//   seconds(x) = x * draft_row + plain + x * verified_row + tokens(x) * extra
//
// and plain decoding is x = 0. p and the times are windowed estimates; extra is what keeping the
// draft KV compressed costs per committed token. Drafting that loses is left for plain decoding and
// tried again later, at doubling distances and with fresh hopes; and whatever the estimates say,
// the time lost to drafting, added up, stays below a small share of all time plus a fixed
// allowance. So auto is never much slower than plain decoding (S20). Before the first draft of a
// model, when its KV is not compressed yet, that has to be expected to pay too (PaysToStart).
//
// A pass stalled by others says nothing of drafting: the first round, and then one that follows
// rounds as they were expected, is charged what was expected.
//
// Proposals that are looked up (decode/ngram_lookup.h) cost no draft row, come now and then, and
// are as good as the match they rest on: evidence is kept by the length of the match. They need no
// rest when they lose: each is cut to what the allowance can still pay if all of it is rejected.
// Threads: one user at a time. Times come in as arguments: a pure state machine.
// Source: VeriCache (arXiv 2605.17613), performance model, with the compute of verified rows.
#pragma once

#include <array>
#include <optional>

namespace vericache::decode {

// The middle of the last few observations: one stalled step does not move it.
class RecentMedian {
 public:
  void Add(double value);
  int Count() const { return n_; }
  double Value() const;  // requires Count() > 0

 private:
  static constexpr int kKept = 5;
  std::array<double, kKept> values_{};
  int n_ = 0;     // kept so far
  int next_ = 0;  // where the next one goes
};

// What one round took and gave. A round without drafts is a plain step.
struct RoundTimes {
  int n_matched = 0;  // tokens that a looked-up proposal rests on
  int n_drafted = 0;
  int n_accepted = 0;
  double draft_s = 0;   // all draft rows
  double verify_s = 0;  // the pass over n_drafted + 1 rows
  double extra_s = 0;   // this round's share of the compressions
};

// What one row more is expected to cost while nothing is measured, in plain steps. The defaults are
// what was seen at some thousand tokens of context.
struct RowCosts {
  double draft = 0.5;
  double verified = 0.2;
};

class DraftLength {
 public:
  // Always n.
  static DraftLength Fixed(int n);
  // Chosen from [0, max].
  static DraftLength Auto(int max);
  // Chosen from [0, max] for each proposal that was looked up.
  static DraftLength AutoLookup(int max);

  // Tokens to draft in the next round; looked-up ones: if they rest on n_matched tokens.
  int Next(int n_matched = 0) const;
  void Observe(const RoundTimes& round);
  bool IsFixed() const { return fixed_.has_value(); }

  // In place of the default.
  void Expect(const RowCosts& costs) { expected_ = costs; }
  // Seconds of a plain step; 0: none was measured.
  double PlainSeconds() const { return plain_s_.Count() > 0 ? plain_s_.Value() : 0; }
  // Whether a draft is due, and drafts, if accepted as often as those of good methods are, are
  // expected to gain start_s or more within n_tokens. Requires: a measured plain step.
  bool PaysToStart(double start_s, int n_tokens) const;

 private:
  DraftLength() = default;

  // How likely the next drafted token is accepted: decayed counts, begun with a prior.
  struct Evidence {
    double n_accepted = 0;
    double n_rejected = 0;
    double Acceptance() const { return n_accepted / (n_accepted + n_rejected); }
  };
  // Matches of up to 3 tokens, up to 7, up to 15, and longer.
  static constexpr int kMatchKinds = 4;
  static int KindOf(int n_matched);
  static Evidence MatchPrior(int kind);

  // The draft length of the highest rate, tokens per second; 0: plain decoding.
  struct Choice {
    int n_drafted = 0;
    double rate = 0;
  };
  Choice Best(const Evidence& evidence) const;
  // The longest draft up to n whose rejection the allowance can pay.
  int Affordable(int n) const;
  double SecondsOf(int n_drafted, double n_tokens) const;
  double LossLimit() const;
  void ObservePlain(double seconds);
  void ObserveDraft(const RoundTimes& round);
  void ForgetMatches();
  void ForgetRowCosts();
  void BackOff();

  std::optional<int> fixed_;
  int max_ = 0;
  bool is_lookup_ = false;
  RowCosts expected_{};

  RecentMedian plain_s_;         // a plain step
  RecentMedian draft_row_s_;     // a draft row
  RecentMedian verified_row_s_;  // what each drafted row adds to a verify
  RecentMedian extra_s_;         // share of the compressions of each committed token
  Evidence evidence_;            // of drafts by a model
  std::array<Evidence, kMatchKinds> match_evidence_{};  // of looked-up ones

  int plain_left_ = 0;   // plain steps before the next attempt
  int backoff_ = 0;      // their number after the next failure
  int since_plain_ = 0;  // rounds since the last plain step
  int plain_in_a_row_ = 0;
  bool may_forgive_ = true;  // the next stall
  double lost_s_ = 0;        // time that drafting cost beyond plain decoding; negative: gained
  double total_s_ = 0;
};

}  // namespace vericache::decode
