// Whether weights fit what this process may use: if they do not, loading them would not fail, the
// kernel would end the process.
#pragma once

#include <cstdint>
#include <string>

#include "base/machine_limits.h"
#include "base/result.h"

namespace vericache::model {

// n_bytes: of the file, or of all parts; packed weights take about as much.
// Errors: kResourceExhausted with the figures.
Status CheckMemory(const std::string& path, uint64_t n_bytes, const MachineLimits& limits);

}  // namespace vericache::model
