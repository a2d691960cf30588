#include "compress/chunk_matching.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace vericache::compress {
namespace {

constexpr int kDotsAtOnce = 4;

// Dots of one key with a few others at once: they share the loop. Keys are encoded so that no dot
// of two of them reaches 2^31; keys so tiny that their norm was lost wrap around, as in attention.
void DotFew(const int16_t* a, const int16_t* const (&b)[kDotsAtOnce], int head_dim,
            int32_t (&dots)[kDotsAtOnce]) {
  const int16_t* b0 = b[0];
  const int16_t* b1 = b[1];
  const int16_t* b2 = b[2];
  const int16_t* b3 = b[3];
  uint32_t sums[kDotsAtOnce] = {};
  for (int dim = 0; dim < head_dim; ++dim) {
    sums[0] += static_cast<uint32_t>(a[dim] * b0[dim]);
    sums[1] += static_cast<uint32_t>(a[dim] * b1[dim]);
    sums[2] += static_cast<uint32_t>(a[dim] * b2[dim]);
    sums[3] += static_cast<uint32_t>(a[dim] * b3[dim]);
  }
  for (int i = 0; i < kDotsAtOnce; ++i) dots[i] = static_cast<int32_t>(sums[i]);
}

// 1 / |codes| of every key of the middle, 0 for a zero key. Codes alone give the cosine: the steps
// of two keys cancel.
std::vector<double> InverseLengths(const kv::HeadSlots& slots, const Middle& middle) {
  std::vector<double> inverses;
  inverses.reserve(static_cast<size_t>(middle.end - middle.begin));
  for (int slot = middle.begin; slot < middle.end; ++slot) {
    const int16_t* key = slots.KeyCodes(slot);
    int64_t square = 0;
    for (int dim = 0; dim < slots.head_dim; ++dim) square += key[dim] * key[dim];
    inverses.push_back(square > 0 ? 1.0 / std::sqrt(static_cast<double>(square)) : 0.0);
  }
  return inverses;
}

// A centroid under way: sums weighted by degree, in binary64.
class Cluster {
 public:
  explicit Cluster(int head_dim)
      : key_(static_cast<size_t>(head_dim)), value_(static_cast<size_t>(head_dim)) {}

  void Clear() {
    std::fill(key_.begin(), key_.end(), 0.0);
    std::fill(value_.begin(), value_.end(), 0.0);
    degree_ = 0;
  }

  void Add(const kv::I16Slot& slot, int32_t degree) {
    const double key_weight = static_cast<double>(slot.key_step) * degree;
    const double value_weight = static_cast<double>(slot.value_step) * degree;
    for (size_t dim = 0; dim < key_.size(); ++dim) {
      key_[dim] += key_weight * slot.key[dim];
      value_[dim] += value_weight * slot.value[dim];
    }
    degree_ += degree;
  }

  void AppendTo(kv::HeadSlots& slots, Position position, const kernels::KernelTable& kernels) {
    std::vector<float> key(key_.size());
    std::vector<float> value(value_.size());
    for (size_t dim = 0; dim < key_.size(); ++dim) {
      key[dim] = static_cast<float>(key_[dim] / degree_);
      value[dim] = static_cast<float>(value_[dim] / degree_);
    }
    slots.Encode(kernels, {.key = key.data(), .value = value.data()}, degree_, position);
  }

 private:
  std::vector<double> key_;
  std::vector<double> value_;
  int32_t degree_ = 0;
};

}  // namespace

std::vector<MergePair> MatchChunks(const kv::HeadSlots& slots, const Middle& middle) {
  const std::vector<double> inverses = InverseLengths(slots, middle);
  const auto inverse_of = [&](int slot) {
    return inverses[static_cast<size_t>(slot - middle.begin)];
  };
  std::vector<MergePair> pairs;
  for (int begin = middle.begin; begin < middle.end; begin += middle.chunk) {
    const int end = std::min(begin + middle.chunk, middle.end);
    if (end - begin < 2) break;  // a lone slot has no b
    const int last_b = begin + 1 + (end - begin - 2) / 2 * 2;
    for (int a = begin; a < end; a += 2) {
      MergePair best{.a = a, .b = -1};
      for (int first_b = begin + 1; first_b < end; first_b += 2 * kDotsAtOnce) {
        const int16_t* keys[kDotsAtOnce];
        int32_t dots[kDotsAtOnce];
        for (int i = 0; i < kDotsAtOnce; ++i) {
          keys[i] = slots.KeyCodes(std::min(first_b + 2 * i, last_b));
        }
        DotFew(slots.KeyCodes(a), keys, slots.head_dim, dots);
        for (int b = first_b; b <= std::min(first_b + 2 * (kDotsAtOnce - 1), last_b); b += 2) {
          const double cosine = dots[(b - first_b) / 2] * inverse_of(b) * inverse_of(a);
          if (best.b >= 0 && cosine <= best.cosine) continue;
          best.b = b;
          best.cosine = cosine;
        }
      }
      pairs.push_back(best);
    }
  }
  return pairs;
}

std::vector<MergePair> BestPairs(std::vector<MergePair> pairs, int n_pairs) {
  const auto n = static_cast<std::ptrdiff_t>(n_pairs);
  if (n >= static_cast<std::ptrdiff_t>(pairs.size())) return pairs;
  std::nth_element(pairs.begin(), pairs.begin() + n, pairs.end(),
                   [](const MergePair& x, const MergePair& y) {
                     return x.cosine != y.cosine ? x.cosine > y.cosine : x.a < y.a;
                   });
  pairs.resize(static_cast<size_t>(n));
  std::sort(pairs.begin(), pairs.end(),
            [](const MergePair& x, const MergePair& y) { return x.a < y.a; });
  return pairs;
}

void MergePairs(const kv::HeadSlots& slots, std::span<const MergePair> pairs,
                const kernels::KernelTable& kernels, kv::HeadSlots& merged) {
  constexpr int kStays = -1;
  // The b each slot joins; a b joins itself.
  std::vector<int> joins(static_cast<size_t>(slots.Count()), kStays);
  for (const MergePair& pair : pairs) {
    joins[static_cast<size_t>(pair.a)] = pair.b;
    joins[static_cast<size_t>(pair.b)] = pair.b;
  }
  // The members of every b, members of one b ascending.
  std::vector<std::pair<int, int>> members;  // (b, slot)
  for (int slot = 0; slot < slots.Count(); ++slot) {
    const int b = joins[static_cast<size_t>(slot)];
    if (b != kStays) members.emplace_back(b, slot);
  }
  std::sort(members.begin(), members.end());

  merged.Clear();
  merged.Reserve(slots.Count());
  Cluster cluster(slots.head_dim);
  auto next = members.begin();
  for (int slot = 0; slot < slots.Count(); ++slot) {
    const auto i = static_cast<size_t>(slot);
    if (joins[i] == kStays) {
      merged.Append(slots.At(slot), slots.degrees[i], slots.positions[i]);
    } else if (joins[i] == slot) {
      cluster.Clear();
      for (; next != members.end() && next->first == slot; ++next) {
        cluster.Add(slots.At(next->second), slots.degrees[static_cast<size_t>(next->second)]);
      }
      cluster.AppendTo(merged, slots.positions[i], kernels);
    }
  }
}

}  // namespace vericache::compress
