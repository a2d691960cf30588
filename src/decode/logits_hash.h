// One number for the logits of a whole answer: two runs whose hashes are equal committed the same
// bits.
#pragma once

#include <cstdint>
#include <span>

namespace vericache::decode {

// `seed`: the hash of the rows before; 0 for the first.
uint64_t HashLogits(std::span<const float> logits, uint64_t seed);

}  // namespace vericache::decode
