#include "engine/kv_budget.h"

#include <algorithm>

namespace vericache::engine {
namespace {

// Code, tokenizer, the buffers of a pass and a draft KV: 128 MB were measured with SmolLM2 at 6,664
// tokens.
constexpr size_t kRest = size_t{128} << 20;

}  // namespace

size_t KvBudget(size_t asked, size_t weight_bytes, const MachineLimits& limits) {
  const size_t taken = weight_bytes + kRest;
  const size_t left = limits.memory_bytes > taken ? limits.memory_bytes - taken : 0;
  return std::min(asked, left);
}

}  // namespace vericache::engine
