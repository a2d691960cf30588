#include "compress/head_division.h"

#include <limits>

#include "compress/top_slots.h"

namespace vericache::compress {
namespace {

constexpr double kSafeguard = 0.2;

}  // namespace

std::vector<int> DivideAmongHeads(std::span<const HeadChoice> heads) {
  // The scores of all heads in one list; what is certain ranks above all.
  std::vector<float> scores;
  std::vector<int> head_of;
  int n_kept = 0;
  for (size_t head = 0; head < heads.size(); ++head) {
    const size_t begin = scores.size();
    scores.insert(scores.end(), heads[head].scores.begin(), heads[head].scores.end());
    head_of.resize(scores.size(), static_cast<int>(head));
    const int n_certain = static_cast<int>(kSafeguard * heads[head].n_kept);
    for (const int slot : TopSlots(heads[head].scores, n_certain)) {
      scores[begin + static_cast<size_t>(slot)] = std::numeric_limits<float>::infinity();
    }
    n_kept += heads[head].n_kept;
  }
  std::vector<int> counts(heads.size(), 0);
  for (const int i : TopSlots(scores, n_kept)) {
    ++counts[static_cast<size_t>(head_of[static_cast<size_t>(i)])];
  }
  return counts;
}

}  // namespace vericache::compress
