#include "decode/ngram_lookup.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vericache::decode {
namespace {

constexpr int32_t kEmpty = -1;
constexpr size_t kFirstSlots = 64;  // a power of two, as all sizes are

size_t HashOf(std::span<const TokenId> ngram) {
  uint64_t h = 0x243f6a8885a308d3u;
  for (const TokenId token : ngram) {
    h = (h ^ static_cast<uint64_t>(token.value)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h;
}

}  // namespace

NgramLookup::NgramLookup(NgramRange range) : range_(range) {
  VC_CHECK(
      range.min_match >= 1 && range.min_match <= range.max_match && range.max_match <= kMaxCounted,
      "matches of {} to {} tokens", range.min_match, range.max_match);
  tables_.resize(static_cast<size_t>(range.max_match - range.min_match + 1));
  for (Table& table : tables_) table.ends.assign(kFirstSlots, kEmpty);
}

// An n-gram enters when the token behind it is known: what has no continuation is no place to copy
// from, and the newest tokens never match themselves.
void NgramLookup::Append(TokenId token) {
  const auto end = static_cast<int32_t>(tokens_.size());
  for (int n = range_.min_match; n <= std::min(range_.max_match, static_cast<int>(end)); ++n) {
    Insert(n, end);
  }
  tokens_.push_back(token);
}

size_t NgramLookup::SlotOf(const Table& table, std::span<const TokenId> ngram) const {
  const size_t mask = table.ends.size() - 1;
  size_t slot = HashOf(ngram) & mask;
  while (table.ends[slot] != kEmpty) {
    const TokenId* end = tokens_.data() + table.ends[slot];
    if (std::equal(ngram.begin(), ngram.end(), end - ngram.size())) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

void NgramLookup::Insert(int n, int32_t end) {
  Table& table = TableOf(n);
  if (2 * (table.n_used + 1) > table.ends.size()) Grow(n);
  const auto length = static_cast<size_t>(n);
  const size_t slot =
      SlotOf(table, std::span(tokens_).subspan(static_cast<size_t>(end) - length, length));
  if (table.ends[slot] == kEmpty) ++table.n_used;
  table.ends[slot] = end;
}

void NgramLookup::Grow(int n) {
  Table& table = TableOf(n);
  const std::vector<int32_t> old =
      std::exchange(table.ends, std::vector<int32_t>(2 * table.ends.size(), kEmpty));
  const auto length = static_cast<size_t>(n);
  for (const int32_t end : old) {
    if (end == kEmpty) continue;
    const auto ngram = std::span(tokens_).subspan(static_cast<size_t>(end) - length, length);
    table.ends[SlotOf(table, ngram)] = end;
  }
}

NgramProposal NgramLookup::Propose(std::span<const TokenId> drafted, int n_tokens) const {
  // The end of the sequence, as far as matches are counted.
  const size_t n_committed = std::min(tokens_.size(), static_cast<size_t>(kMaxCounted));
  std::vector<TokenId> sequence(tokens_.end() - static_cast<ptrdiff_t>(n_committed), tokens_.end());
  sequence.insert(sequence.end(), drafted.begin(), drafted.end());

  const int longest = std::min(range_.max_match, static_cast<int>(sequence.size()));
  for (int n = longest; n >= range_.min_match; --n) {
    const Table& table = TableOf(n);
    const int32_t end = table.ends[SlotOf(table, std::span(sequence).last(static_cast<size_t>(n)))];
    if (end == kEmpty) continue;
    NgramProposal proposal;
    const int most = std::min({kMaxCounted, static_cast<int>(sequence.size()), end});
    while (proposal.n_matched < most &&
           tokens_[static_cast<size_t>(end - 1 - proposal.n_matched)] ==
               sequence[sequence.size() - 1 - static_cast<size_t>(proposal.n_matched)]) {
      ++proposal.n_matched;
    }
    // Behind the committed tokens the sequence goes on with the drafted ones, then with what is
    // proposed already.
    const size_t first = tokens_.size() - n_committed;  // where `sequence` begins
    for (size_t at = static_cast<size_t>(end); n_tokens > 0; ++at, --n_tokens) {
      sequence.push_back(at < tokens_.size() ? tokens_[at] : sequence[at - first]);
      proposal.tokens.push_back(sequence.back());
    }
    return proposal;
  }
  return {};
}

}  // namespace vericache::decode
