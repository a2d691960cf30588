// Finds where the newest tokens of a sequence have occurred before, and proposes what followed
// there: a drafter that runs no model and reads no KV.
//
// Let s be the committed tokens and behind them those drafted in this round. The longest n in
// [min_match, max_match] counts for which the last n tokens of s also end at some place e inside
// the committed ones; of several places the newest. Proposed token i is then token e + i of s
// followed by the proposal itself, so that a proposal may run over its own start: a text that
// repeats is continued for as long as is asked.
//
// One open-addressed table per match length holds the newest place of every n-gram; the n-grams
// themselves are read back from the tokens, so equal hashes never give a wrong match. Append costs
// a constant number of insertions. Memory: 8 to 16 bytes per token and match length, about 1 % of
// what the full KV of a small model takes.
// Threads: one user at a time. Source: prompt lookup decoding (Saxena 2023), with the longest
// match.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace vericache::decode {

// Two tokens agree by chance too often, and eight are nearly always a copy: what comes before them
// decides only between places that agree in eight.
struct NgramRange {
  int min_match = 3;
  int max_match = 8;
};

struct NgramProposal {
  std::vector<TokenId> tokens;  // empty: no match
  int n_matched = 0;            // tokens that agree before them, counted up to kMaxCounted
};

class NgramLookup {
 public:
  static constexpr int kMaxCounted = 32;

  // Requires: 1 <= min_match <= max_match <= kMaxCounted.
  explicit NgramLookup(NgramRange range = {});

  void Append(TokenId token);
  // Up to what follows `drafted` behind the committed tokens: n_tokens of them if there is a match.
  // Requires: n_tokens >= 0.
  NgramProposal Propose(std::span<const TokenId> drafted, int n_tokens) const;
  int TokenCount() const { return static_cast<int>(tokens_.size()); }

 private:
  // The newest place of each n-gram of one length: where it ends. Open addressing, at most half
  // full.
  struct Table {
    std::vector<int32_t> ends;  // kEmpty or an end
    size_t n_used = 0;
  };

  void Insert(int n, int32_t end);
  void Grow(int n);
  Table& TableOf(int n) { return tables_[static_cast<size_t>(n - range_.min_match)]; }
  const Table& TableOf(int n) const { return tables_[static_cast<size_t>(n - range_.min_match)]; }
  // The slot that holds the n-gram of `last` (its last token at the end), or the empty one where it
  // belongs.
  size_t SlotOf(const Table& table, std::span<const TokenId> ngram) const;

  NgramRange range_;
  std::vector<TokenId> tokens_;
  std::vector<Table> tables_;  // [n - min_match]
};

}  // namespace vericache::decode
