// The slots with the highest scores.
#pragma once

#include <span>
#include <vector>

namespace vericache::compress {

// The n_kept highest of `scores`, ascending by slot; among equals the lower slot wins. NaN ranks
// lowest.
// Cost: O(n).
std::vector<int> TopSlots(std::span<const float> scores, int n_kept);

}  // namespace vericache::compress
