// Bitwise comparison of floats: what every path must pass against the reference.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace vericache::testing_support {

inline uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Equal bits. NaN equals NaN: IEEE leaves sign and payload of a NaN to the machine, and no row that
// holds one is ever committed.
inline bool SameBits(float a, float b) { return Bits(a) == Bits(b) || (a != a && b != b); }

inline testing::AssertionResult SameBits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) {
    return testing::AssertionFailure() << a.size() << " values against " << b.size();
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (SameBits(a[i], b[i])) continue;
    return testing::AssertionFailure() << "value " << i << " of " << a.size() << ": "
                                       << std::hexfloat << a[i] << " against " << b[i];
  }
  return testing::AssertionSuccess();
}

}  // namespace vericache::testing_support
