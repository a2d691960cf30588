#include "decode/noise.h"

#include <algorithm>

#include "base/exact_math.h"

namespace vericache::decode {
namespace {

constexpr double kLog2E = 1.4426950408889634;

}  // namespace

double UniformFromBits(uint64_t bits) {
  return std::min((static_cast<double>(bits >> 11) + 0.5) * 0x1p-53, 1.0 - 0x1p-53);
}

double GumbelFromBits(uint64_t bits) { return -ExactLog(-ExactLog(UniformFromBits(bits))); }

// g >= bound means -log(u) <= e^-bound, and 1 - u <= -log(u); so 1 - u > 2^-k with
// k = floor(bound * log2(e)) rules it out, as 2^-k >= e^-bound. If the top k bits of the draw are
// not all ones then u < 1 - 2^-k, up to the half unit of 2^-53 that rounding u may add: k is kept
// well below 53.
bool GumbelIsBelow(uint64_t bits, double bound) {
  if (bound > kMaxGumbel) return true;
  const int k = static_cast<int>(std::clamp(bound * kLog2E, 0.0, 48.0));
  if (k == 0) return false;
  return (~bits >> (64 - k)) != 0;
}

}  // namespace vericache::decode
