// Cosines of stored keys, from their codes: the steps of two keys cancel.
#pragma once

#include <span>
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

  struct Nearest {
    int index = -1;  // in the list; -1: it is empty
    double cosine = 0.0;
  };
  // The slot of a list whose key is most like that of slot a; the first among equals.
  Nearest NearestOf(int a, std::span<const int> others) const;

 private:
  const kv::HeadSlots& slots_;
  std::vector<double> inverse_lengths_;  // [n] 1 / |codes|, 0 for a zero key
};

}  // namespace vericache::compress
