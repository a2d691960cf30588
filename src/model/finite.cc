#include "model/finite.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace vericache::model {
namespace {

// Bits of the largest magnitude; NaN is above infinity.
uint32_t LargestMagnitude(const float* x, int n) {
  uint32_t largest = 0;
  for (int i = 0; i < n; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  }
  return largest;
}

constexpr uint32_t kInfinity = 0x7f800000u;

}  // namespace

bool AreFinite(const float* x, int n) { return LargestMagnitude(x, n) < kInfinity; }

bool ZeroNonFinite(float* x, int n) {
  if (AreFinite(x, n)) return true;
  for (int i = 0; i < n; ++i) {
    if (!AreFinite(x + i, 1)) x[i] = 0.0f;
  }
  return false;
}

bool IsEncodable(const kernels::KernelTable& kernels, const float* x, int head_dim) {
  // 256 squares of numbers below 2^59 do not overflow; larger ones are asked of the rule itself.
  if (LargestMagnitude(x, head_dim) < std::bit_cast<uint32_t>(0x1p59f)) return true;
  int16_t codes[kernels::kMaxHeadDim];
  bool is_finite = true;
  kernels.encode_key(x, head_dim, codes, &is_finite);
  return is_finite;
}

}  // namespace vericache::model
