// The floating-point state that the numerics rest on: subnormal numbers are neither flushed nor
// read as zero, and rounding is to nearest.
//
// A library built with fast-math may have changed it for the whole process before us; every result
// would then depend on which library was loaded (I3).
// Threads: looks at the calling thread alone.
#pragma once

#include "base/result.h"

namespace vericache::engine {

// Errors: kInternal, saying what is off.
Status CheckFloatEnvironment();

}  // namespace vericache::engine
