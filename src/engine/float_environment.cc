#include "engine/float_environment.h"

#include <cfenv>
#include <limits>

namespace vericache::engine {

// By what arithmetic does, not by what a control register says: the same on every architecture.
Status CheckFloatEnvironment() {
  if (std::fegetround() != FE_TONEAREST) {
    return MakeError(ErrorCode::kInternal, "floating-point rounding is not to nearest");
  }
  volatile float smallest_normal = std::numeric_limits<float>::min();
  volatile float half = 0.5f;
  const volatile float made = smallest_normal * half;
  if (made == 0.0f) {
    return MakeError(ErrorCode::kInternal,
                     "this process flushes subnormal results to zero (FTZ): a library in it was "
                     "built with fast-math");
  }
  volatile float subnormal = std::numeric_limits<float>::denorm_min();
  volatile float large = 0x1p40f;
  const volatile float read = subnormal * large;
  if (read == 0.0f) {
    return MakeError(ErrorCode::kInternal,
                     "this process reads subnormal numbers as zero (DAZ): a library in it was "
                     "built with fast-math");
  }
  return {};
}

}  // namespace vericache::engine
