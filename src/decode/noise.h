// The noise of seeded sampling: Gumbel variates that depend on (seed, choice, position, id) alone.
//
// Drawing the argmax of logit / T + g with independent Gumbel noise g is drawing from the softmax,
// so a sampled token is a function of its logits and its place, and accepting a draft is plain
// equality at every temperature. Nothing is consumed: no generator has to be rewound after a
// rejected draft.
// Threads: pure functions. Source: docs/numerics.md section 5; the mixer is SplitMix64's (Steele,
// Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace vericache::decode {

// Bijective mixing of 64 bits.
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The noise of one position: one 64-bit word per token id.
class PositionNoise {
 public:
  constexpr PositionNoise(uint64_t seed, uint32_t choice, Position position)
      : key_(Mix64(Mix64(seed + kStep) +
                   ((uint64_t{choice} << 32) | static_cast<uint32_t>(position.value)))) {}

  constexpr uint64_t Bits(TokenId id) const {
    return Mix64(key_ + kStep * (static_cast<uint64_t>(id.value) + 1));
  }
  // One word more, which is no token's: for a choice that concerns all of them.
  constexpr uint64_t SharedBits() const { return Mix64(key_); }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio
  uint64_t key_;
};

// Bounds of GumbelFromBits: -log(-log(u)) at u = 2^-54 and u = 1 - 2^-53, rounded outwards.
inline constexpr double kMinGumbel = -3.63;
inline constexpr double kMaxGumbel = 36.74;

// ((bits >> 11) + 0.5) * 2^-53 in binary64, in (0, 1): capped at 1 - 2^-53, because the largest
// draw would otherwise round to 1, whose noise is infinite.
double UniformFromBits(uint64_t bits);

// g = -log(-log(u)), u = UniformFromBits(bits).
double GumbelFromBits(uint64_t bits);

// True only if GumbelFromBits(bits) < bound is certain; costs an integer comparison where the noise
// itself costs two logarithms. Nearly always true for bounds above a few units.
bool GumbelIsBelow(uint64_t bits, double bound);

}  // namespace vericache::decode
