// How much of the memory is the full KV's.
#pragma once

#include <cstddef>

#include "base/machine_limits.h"

namespace vericache::engine {

// asked: --fast-kv. What the weights and the rest of the process leave of the limit, if that is
// less: a fixed figure of the machine or its container, so that answers end at the same length
// whatever else is running.
size_t KvBudget(size_t asked, size_t weight_bytes, const MachineLimits& limits);

}  // namespace vericache::engine
