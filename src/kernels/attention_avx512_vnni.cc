// Attention with AVX-512 VNNI: avx512 with vpdpwssd for the integer dots.
#include <immintrin.h>

#include <utility>

#include "kernels/attention_lanes512.inl"
#include "kernels/kv_layout.h"
#include "kernels/numerics.h"
#include "kernels/paths.h"

namespace vericache::kernels {
namespace {

struct V : Lanes512 {
  static constexpr bool kDefersBytes = false;  // DotBytes sums in 32 bits

  // acc += the dot of each pair of 16-bit integers.
  [[gnu::always_inline]] static void DotPairs(Int& acc, Int a, Int b) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));  // the intrinsic makes GCC spill
  }
  // sum += the dot of four of unsigned and signed bytes.
  [[gnu::always_inline]] static void DotBytes(Int& sum, Int u, Int s) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u), "v"(s));
  }
};

float EncodeQuery(const float* q, int head_dim, int16_t* codes, bool* is_finite) {
  return avx512::EncodeKey(q, head_dim, codes, is_finite);
}

}  // namespace
}  // namespace vericache::kernels

#include "kernels/attention_simd.inl"

namespace vericache::kernels::avx512vnni {

const AttentionKernels kAttention[kKvFormatCount] = {
    Table<PairCodes<KvFormat::kI16>>(), Table<PairCodes<KvFormat::kQ8>>(),
    Table<ByteCodes<KvFormat::kQ4>>(), Table<ByteCodes<KvFormat::kQ2>>()};

}  // namespace vericache::kernels::avx512vnni
