#include "compress/top_slots.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace vericache::compress {

std::vector<int> TopSlots(std::span<const float> scores, int n_kept) {
  std::vector<int> slots(scores.size());
  std::iota(slots.begin(), slots.end(), 0);
  const auto n = static_cast<std::ptrdiff_t>(n_kept);
  if (n >= static_cast<std::ptrdiff_t>(slots.size())) return slots;
  const auto rank = [&](int slot) {
    const float score = scores[static_cast<size_t>(slot)];
    return score == score ? score : -std::numeric_limits<float>::infinity();
  };
  std::nth_element(slots.begin(), slots.begin() + n, slots.end(),
                   [&](int a, int b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
  slots.resize(static_cast<size_t>(n));
  std::sort(slots.begin(), slots.end());
  return slots;
}

}  // namespace vericache::compress
