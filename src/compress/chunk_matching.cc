#include "compress/chunk_matching.h"

#include <algorithm>
#include <utility>

#include "compress/key_cosines.h"

namespace vericache::compress {
namespace {

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

// The slots of one chunk, ascending.
struct Parts {
  std::vector<int> a;
  std::vector<int> b;
};

bool TossCoin(Position position, int round) {
  uint64_t z = (static_cast<uint64_t>(position.value) << 32) + static_cast<uint64_t>(round) +
               0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return ((z ^ (z >> 31)) & 1) != 0;
}

// Modifies: parts, which lose what they held.
void PartChunk(const kv::HeadSlots& slots, const Middle& middle, int begin, Parts& parts) {
  parts.a.clear();
  parts.b.clear();
  const int end = std::min(begin + middle.chunk, middle.end);
  for (int slot = begin; slot < end; ++slot) {
    bool is_b = (slot - begin) % 2 != 0;
    if (middle.split == Split::kHalves) is_b = slot - begin >= (end - begin + 1) / 2;
    if (middle.split == Split::kRandom) {
      is_b = TossCoin(slots.positions[static_cast<size_t>(slot)], middle.round);
    }
    (is_b ? parts.b : parts.a).push_back(slot);
  }
}

}  // namespace

std::vector<MergePair> MatchChunks(const kv::HeadSlots& slots, const Middle& middle) {
  const KeyCosines cosines(slots);
  std::vector<MergePair> pairs;
  Parts parts;
  for (int begin = middle.begin; begin < middle.end; begin += middle.chunk) {
    PartChunk(slots, middle, begin, parts);
    if (parts.b.empty()) continue;  // a lone slot has no b
    for (const int a : parts.a) {
      const auto nearest = cosines.NearestOf(a, parts.b);
      pairs.push_back(
          {.a = a, .b = parts.b[static_cast<size_t>(nearest.index)], .cosine = nearest.cosine});
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
