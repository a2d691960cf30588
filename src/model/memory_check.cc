#include "model/memory_check.h"

namespace vericache::model {

Status CheckMemory(const std::string& path, uint64_t n_bytes, const MachineLimits& limits) {
  if (n_bytes <= limits.available_bytes) return {};
  constexpr double kMb = 1e6;
  return MakeError(ErrorCode::kResourceExhausted,
                   "{}: its weights take {:.0f} MB; of the {:.0f} MB that this process may use, "
                   "{:.0f} MB are free",
                   path, static_cast<double>(n_bytes) / kMb,
                   static_cast<double>(limits.memory_bytes) / kMb,
                   static_cast<double>(limits.available_bytes) / kMb);
}

}  // namespace vericache::model
