#include "decode/logits_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace vericache::decode {

uint64_t HashLogits(std::span<const float> logits, uint64_t seed) {
  return XXH3_64bits_withSeed(logits.data(), logits.size_bytes(), seed);
}

}  // namespace vericache::decode
