#include "compress/key_cosines.h"

#include <cmath>
#include <cstdint>

namespace vericache::compress {

KeyCosines::KeyCosines(const kv::HeadSlots& slots) : slots_(slots) {
  inverse_lengths_.reserve(static_cast<size_t>(slots.Count()));
  for (int slot = 0; slot < slots.Count(); ++slot) {
    const int16_t* key = slots.KeyCodes(slot);
    int64_t square = 0;
    for (int dim = 0; dim < slots.head_dim; ++dim) square += key[dim] * key[dim];
    inverse_lengths_.push_back(square > 0 ? 1.0 / std::sqrt(static_cast<double>(square)) : 0.0);
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

}  // namespace vericache::compress
