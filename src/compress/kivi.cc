// KIVI: every slot kept, in 8, 4 or 2 bits; keys per channel, values per token.
//
//   code = round((x - zero) / scale),  zero = min,  scale = (max - min) / (2^bits - 1)
//
// A key channel's minimum and maximum are taken over 64 consecutive slots, because key outliers sit
// in channels; a value's over the whole head of its token. The original groups values by 32
// channels of the concatenated heads; one group per head (64 to 128 channels) costs half the scales
// and lets the weighted sum stay an integer dot. Recent tokens stay exact: they are the draft's
// tail, which plays the part of the residual, and only verified tokens ever leave it.
// Source: Liu et al., "KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache", section 4.

#include "compress/few_bits.h"
#include "compress/method.h"

namespace vericache::compress {
namespace {

std::unique_ptr<Compressor> MakeKivi(Parameters& parameters) {
  return MakeFewBits({.name = "kivi"}, parameters);
}

}  // namespace

extern const Method kKivi;
const Method kKivi{
    .name = "kivi", .summary = "keeps every token in 8, 4 or 2 bits (KIVI)", .make = MakeKivi};

}  // namespace vericache::compress
