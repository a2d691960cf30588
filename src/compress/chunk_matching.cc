#include "compress/chunk_matching.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace vericache::compress {
namespace {

// Keys are encoded so that no dot of two of them reaches 2^31; keys so tiny that their norm was
// lost wrap around, as in attention.
int32_t Dot(const int16_t* a, const int16_t* b, int head_dim) {
  uint32_t sum = 0;
  for (int dim = 0; dim < head_dim; ++dim) sum += static_cast<uint32_t>(a[dim] * b[dim]);
  return static_cast<int32_t>(sum);
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
    for (int a = begin; a < end; a += 2) {
      MergePair best{.a = a, .b = -1};
      for (int b = begin + 1; b < end; b += 2) {
        const int32_t dot = Dot(slots.KeyCodes(a), slots.KeyCodes(b), slots.head_dim);
        const double cosine = dot * inverse_of(b) * inverse_of(a);
        if (best.b >= 0 && cosine <= best.cosine) continue;
        best.b = b;
        best.cosine = cosine;
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

kv::HeadSlots MergePairs(const kv::HeadSlots& slots, std::span<const MergePair> pairs,
                         const kernels::KernelTable& kernels) {
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

  kv::HeadSlots merged(slots.head_dim);
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
  return merged;
}

}  // namespace vericache::compress
