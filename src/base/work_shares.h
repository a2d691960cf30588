// Items [0, n) dealt to a team: one contiguous share each, taken from the front; whoever is done
// takes from the back of another's share. Neighbouring items stay on one thread (prefetch, packed
// queries), and uneven costs still end together.
//
// Which member does which item never changes a bit of a result (I3).
// Threads: Next by any member; Reset by one, with a barrier before the next use.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace vericache {

class WorkShares {
 public:
  explicit WorkShares(int n_members)
      : n_members_(n_members), shares_(std::make_unique<Share[]>(static_cast<size_t>(n_members))) {}

  void Reset(int n_items) {
    for (int64_t i = 0; i < n_members_; ++i) {
      const int64_t begin = n_items * i / n_members_;
      const int64_t end = n_items * (i + 1) / n_members_;
      shares_[static_cast<size_t>(i)].range.store(Pack(begin, end), std::memory_order_relaxed);
    }
  }

  // An item that nobody else gets, or -1 when none is left.
  int Next(int member) {
    for (int i = 0; i < n_members_; ++i) {
      const int owner = (member + i) % n_members_;
      std::atomic<uint64_t>& range = shares_[static_cast<size_t>(owner)].range;
      uint64_t seen = range.load(std::memory_order_relaxed);
      while (true) {
        const auto begin = static_cast<int64_t>(seen >> 32);
        const auto end = static_cast<int64_t>(seen & 0xffffffffu);
        if (begin >= end) break;
        const uint64_t rest = i == 0 ? Pack(begin + 1, end) : Pack(begin, end - 1);
        if (range.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) {
          return static_cast<int>(i == 0 ? begin : end - 1);
        }
      }
    }
    return -1;
  }

 private:
  struct alignas(64) Share {
    std::atomic<uint64_t> range{0};  // first item in the high half, end in the low half
  };
  static uint64_t Pack(int64_t begin, int64_t end) {
    return static_cast<uint64_t>(begin) << 32 | static_cast<uint64_t>(end);
  }

  int n_members_;
  std::unique_ptr<Share[]> shares_;
};

}  // namespace vericache
