// Cosines of stored keys, from their codes: the steps of two keys cancel.
#pragma once

#include <vector>

#include "kv/head_slots.h"

namespace vericache::compress {

class KeyCosines {
 public:
  static constexpr int kAtOnce = 4;

  // The slots must outlive it.
  // Cost: O(n * d).
  explicit KeyCosines(const kv::HeadSlots& slots);

  // Of slot a with each b; 0 if one of the two keys is zero. Others at once share the loop.
  // Cost: 4 * d multiplications, exact in integers.
  void Of(int a, const int (&b)[kAtOnce], double (&cosines)[kAtOnce]) const;

 private:
  const kv::HeadSlots& slots_;
  std::vector<double> inverse_lengths_;  // [n] 1 / |codes|, 0 for a zero key
};

}  // namespace vericache::compress
