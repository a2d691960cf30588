#include "compress/folding.h"

#include <algorithm>

#include "base/check.h"
#include "compress/key_cosines.h"

namespace vericache::compress {
namespace {

// Sums of a blend under way.
struct Sums {
  std::vector<double> key;
  std::vector<double> value;
  double weight = 0.0;

  void Add(const kv::HeadSlots& slots, int slot, double slot_weight) {
    const kv::I16Slot codes = slots.At(slot);
    const double key_weight = slot_weight * codes.key_step;
    const double value_weight = slot_weight * codes.value_step;
    for (size_t dim = 0; dim < key.size(); ++dim) {
      key[dim] += key_weight * codes.key[dim];
      value[dim] += value_weight * codes.value[dim];
    }
    weight += slot_weight;
  }
};

std::vector<float> Mean(const std::vector<double>& sums, double weight) {
  std::vector<float> mean;
  for (const double sum : sums) mean.push_back(static_cast<float>(sum / weight));
  return mean;
}

}  // namespace

std::vector<Fold> FoldsOf(const kv::HeadSlots& slots, std::span<const int> kept, int reach) {
  std::vector<Fold> folds;
  if (kept.empty()) return folds;
  const KeyCosines cosines(slots);
  const int n_kept = static_cast<int>(kept.size());
  int n_before = 0;  // kept slots before the present one
  for (int slot = 0; slot < slots.Count(); ++slot) {
    if (n_before < n_kept && kept[static_cast<size_t>(n_before)] == slot) {
      ++n_before;
      continue;
    }
    const int first = std::max(0, n_before - reach);
    const int n_reached = std::min(n_kept, n_before + reach) - first;
    const auto nearest = cosines.NearestOf(
        slot, kept.subspan(static_cast<size_t>(first), static_cast<size_t>(n_reached)));
    folds.push_back({.evicted = slot,
                     .kept = first + nearest.index,
                     .cosine = std::clamp(nearest.cosine, -1.0, 1.0)});  // tiny keys wrap around
  }
  return folds;
}

kv::HeadSlots Blended(const kv::HeadSlots& slots, std::span<const int> kept,
                      std::span<const Fold> folds, const Blend& blend,
                      const kernels::KernelTable& kernels) {
  const auto dims = static_cast<size_t>(slots.head_dim);
  // What joins each kept slot, in order of the slots.
  std::vector<std::vector<const Fold*>> joining(kept.size());
  for (const Fold& fold : folds) {
    if (fold.weight > 0) joining[static_cast<size_t>(fold.kept)].push_back(&fold);
  }
  kv::HeadSlots blended(slots.head_dim);
  blended.Reserve(static_cast<int>(kept.size()));
  for (size_t i = 0; i < kept.size(); ++i) {
    const int slot = kept[i];
    const auto at = static_cast<size_t>(slot);
    if (joining[i].empty()) {
      blended.Append(slots.At(slot), slots.degrees[at], slots.positions[at]);
      continue;
    }
    Sums sums{.key = std::vector<double>(dims), .value = std::vector<double>(dims)};
    sums.Add(slots, slot, blend.kept_weight);
    for (const Fold* fold : joining[i]) sums.Add(slots, fold->evicted, fold->weight);
    const std::vector<float> key = Mean(sums.key, sums.weight);
    const std::vector<float> value = Mean(sums.value, sums.weight);
    blended.Encode(kernels, {.key = key.data(), .value = value.data()}, slots.degrees[at],
                   slots.positions[at]);
    if (blend.takes_keys) continue;
    std::copy_n(slots.KeyCodes(slot), dims,
                blended.key_codes.end() - static_cast<std::ptrdiff_t>(dims));
    blended.key_steps.back() = slots.key_steps[at];
  }
  return blended;
}

std::vector<int> KeptSlots(const HeadJob& head, const kv::PackedHead& packed) {
  std::vector<int> kept;
  auto next = packed.positions.begin();
  for (int slot = 0; slot < head.view.Count() && next != packed.positions.end(); ++slot) {
    if (head.view.PositionOf(slot) != *next) continue;
    kept.push_back(slot);
    ++next;
  }
  VC_CHECK(next == packed.positions.end(), "position {} is in no slot of the head", next->value);
  return kept;
}

}  // namespace vericache::compress
