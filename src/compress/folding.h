// Folding what was evicted into what was kept: each evicted slot joins the kept one whose key is
// most like its own.
//
// The original methods look through all kept keys, which costs n^2; here through the nearest ones.
// Keys grow apart with distance, and a budget that is any use keeps some everywhere.
#pragma once

#include <span>
#include <vector>

#include "compress/compressor.h"
#include "compress/per_head.h"
#include "kv/head_slots.h"

namespace vericache::compress {

struct Fold {
  int evicted = 0;      // slot
  int kept = 0;         // index into the kept slots
  double cosine = 0.0;  // of their keys, in [-1, 1]
  double weight = 0.0;  // of the evicted one in the blend: the method's to fill in, at least 0
};

// Every slot of a head that `kept` (ascending) leaves out, with the most similar of the `reach`
// kept ones before it and behind it; the lower slot among equals. Empty if nothing is kept. Cost:
// O(evicted * reach * d).
std::vector<Fold> FoldsOf(const kv::HeadSlots& slots, std::span<const int> kept, int reach);

// How a kept slot and what joins it become one: means weighted by the folds' weights.
struct Blend {
  double kept_weight = 1.0;  // of the kept slot itself, above 0
  bool takes_keys = false;   // false: keys stay bit for bit
};

// The kept slots, blended where a fold with a weight joins them; all others bit for bit. What is
// folded counts as dropped: degrees stay.
kv::HeadSlots Blended(const kv::HeadSlots& slots, std::span<const int> kept,
                      std::span<const Fold> folds, const Blend& blend,
                      const kernels::KernelTable& kernels);

// The slots of a head that `packed`, made of the same job, kept.
std::vector<int> KeptSlots(const HeadJob& head, const kv::PackedHead& packed);

}  // namespace vericache::compress
