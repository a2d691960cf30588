// Rotated: every slot kept in 8, 4 or 2 bits, keys and values rotated before they are rounded.
//
//   k' = H k,  v' = H v,   H the orthonormal Walsh-Hadamard transform, H H = 1, in blocks of the
//                          largest power of two that divides d;   k and v [n, d]
//   packed as kivi packs: q . k = Hq . k',  sum of p v = H (sum of p v')
//
// Rotation spreads an outlier over its whole block. A value has one step for all of its channels,
// so that without it the loudest channel would set the step of all others. A key has a range per
// channel and 64 slots, as in kivi, and gains less. Attention rotates the queries that meet the
// body, and rotates back what it read there.
// Source: Ashkboos et al., "QuaRot" (arXiv 2404.00456), section 4; llama.cpp pull request 21038,
//         which rotates keys after RoPE and values by the same matrix.

#include "compress/few_bits.h"
#include "compress/method.h"

namespace vericache::compress {
namespace {

std::unique_ptr<Compressor> MakeRotated(Parameters& parameters) {
  return MakeFewBits({.name = "rotated", .is_rotated = true}, parameters);
}

}  // namespace

extern const Method kRotated;
const Method kRotated{.name = "rotated",
                      .summary = "keeps every token in 8, 4 or 2 bits, rotated first (QuaRot)",
                      .make = MakeRotated};

}  // namespace vericache::compress
