// Attention with AVX-512 F, BW, VL and DQ: vpmaddwd for the integer dots.
#include <immintrin.h>

#include <utility>

#include "kernels/attention_lanes512.inl"
#include "kernels/kv_layout.h"
#include "kernels/numerics.h"
#include "kernels/paths.h"

namespace vericache::kernels {
namespace {

struct V : Lanes512 {
  static constexpr bool kDefersBytes = true;  // DotBytes sums in 16 bits

  // acc += the dot of each pair of 16-bit integers.
  [[gnu::always_inline]] static void DotPairs(Int& acc, Int a, Int b) {
    Int products;  // with intrinsics GCC spills the accumulators
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
            : "+v"(acc), "=&v"(products)
            : "v"(a), "v"(b));
  }
  // sum += the dot of each pair of unsigned and signed bytes.
  [[gnu::always_inline]] static void DotBytes(Int& sum, Int u, Int s) {
    Int products;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0"
            : "+v"(sum), "=&v"(products)
            : "v"(u), "v"(s));
  }
};

float EncodeQuery(const float* q, int head_dim, int16_t* codes, bool* is_finite) {
  return avx512::EncodeKey(q, head_dim, codes, is_finite);
}

}  // namespace
}  // namespace vericache::kernels

#include "kernels/attention_simd.inl"

namespace vericache::kernels::avx512 {

const AttentionKernels kAttention[kKvFormatCount] = {
    Table<PairCodes<KvFormat::kI16>>(), Table<PairCodes<KvFormat::kQ8>>(),
    Table<ByteCodes<KvFormat::kQ4>>(), Table<ByteCodes<KvFormat::kQ2>>()};

void Merge(float& max, float& sum, float* out, float chunk_max, float chunk_sum,
           const float* chunk_out, int head_dim) {
  MergeRow({max, sum, out}, {chunk_max, chunk_sum, chunk_out}, head_dim);
}

void Finish(float sum, const float* out, int head_dim, float* result) {
  FinishRow(sum, out, head_dim, result);
}

}  // namespace vericache::kernels::avx512
