#include "compress/key_cosines.h"

#include <algorithm>
#include <cstdint>

#include "compress/lengths.h"

namespace vericache::compress {

KeyCosines::KeyCosines(const kv::HeadSlots& slots) : slots_(slots) {
  inverse_lengths_.reserve(static_cast<size_t>(slots.Count()));
  for (int slot = 0; slot < slots.Count(); ++slot) {
    inverse_lengths_.push_back(InverseKeyLength(slots, slot));
  }
}

// Keys are encoded so that no dot of two of them reaches 2^31; keys so tiny that their norm was
// lost wrap around, as in attention.
void KeyCosines::Of(int a, const int (&b)[kAtOnce], double (&cosines)[kAtOnce]) const {
  const int16_t* key = slots_.KeyCodes(a);
  const int16_t* b0 = slots_.KeyCodes(b[0]);
  const int16_t* b1 = slots_.KeyCodes(b[1]);
  const int16_t* b2 = slots_.KeyCodes(b[2]);
  const int16_t* b3 = slots_.KeyCodes(b[3]);
  uint32_t sums[kAtOnce] = {};
  for (int dim = 0; dim < slots_.head_dim; ++dim) {
    sums[0] += static_cast<uint32_t>(key[dim] * b0[dim]);
    sums[1] += static_cast<uint32_t>(key[dim] * b1[dim]);
    sums[2] += static_cast<uint32_t>(key[dim] * b2[dim]);
    sums[3] += static_cast<uint32_t>(key[dim] * b3[dim]);
  }
  const double inverse_of_a = inverse_lengths_[static_cast<size_t>(a)];
  for (int i = 0; i < kAtOnce; ++i) {
    cosines[i] =
        static_cast<int32_t>(sums[i]) * inverse_lengths_[static_cast<size_t>(b[i])] * inverse_of_a;
  }
}

KeyCosines::Nearest KeyCosines::NearestOf(int a, std::span<const int> others) const {
  Nearest nearest;
  for (size_t first = 0; first < others.size(); first += kAtOnce) {
    int some[kAtOnce];
    double of_some[kAtOnce];
    for (size_t i = 0; i < kAtOnce; ++i) some[i] = others[std::min(first + i, others.size() - 1)];
    Of(a, some, of_some);
    for (int i = 0; i < kAtOnce; ++i) {  // the last, repeated, is not nearer than itself
      if (nearest.index >= 0 && of_some[i] <= nearest.cosine) continue;
      nearest = {.index = static_cast<int>(first) + i, .cosine = of_some[i]};
    }
  }
  return nearest;
}

}  // namespace vericache::compress
