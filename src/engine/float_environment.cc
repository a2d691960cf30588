#include "engine/float_environment.h"

#include <bit>
#include <cfenv>
#include <cstdint>
#include <limits>

namespace vericache::engine {

// By what arithmetic does, not by what a control register says: the same on every architecture.
// Results are looked at as bits, since a comparison would read a subnormal number as zero too.
Status CheckFloatEnvironment() {
  if (std::fegetround() != FE_TONEAREST) {
    return MakeError(ErrorCode::kInternal, "floating-point rounding is not to nearest");
  }
  volatile float smallest_normal = std::numeric_limits<float>::min();
  volatile float half = 0.5f;
  const float made = smallest_normal * half;
  if (std::bit_cast<uint32_t>(made) == 0) {
    return MakeError(ErrorCode::kInternal,
                     "this process flushes subnormal results to zero (FTZ): a library in it was "
                     "built with fast-math");
  }
  volatile float subnormal = std::numeric_limits<float>::denorm_min();
  volatile float large = 0x1p40f;
  const float read = subnormal * large;
  if (std::bit_cast<uint32_t>(read) == 0) {
    return MakeError(ErrorCode::kInternal,
                     "this process reads subnormal numbers as zero (DAZ): a library in it was "
                     "built with fast-math");
  }
  return {};
}

}  // namespace vericache::engine
