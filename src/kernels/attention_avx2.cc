// Attention with AVX2 and FMA: 256-bit vectors, vpmaddwd for the integer dots.
#include <immintrin.h>

#include <utility>

#include "kernels/kv_layout.h"
#include "kernels/numerics.h"
#include "kernels/paths.h"

namespace vericache::kernels {
namespace {

struct V {
  using Float = __m256;
  using Int = __m256i;
  static constexpr int kWidth = 8;

  // Tile shapes: accumulators, operands and one product stay within 16 registers.
  static constexpr int kKeyRows = 6;  // many rows against 2 vectors of slots,
  static constexpr int kKeyVecs = 2;
  static constexpr int kWideKeyRows = 2;  // few rows against 4
  static constexpr int kWideKeyVecs = 4;
  static constexpr int kValueRows = 6;  // rows against 2 vectors of dims
  static constexpr int kValueVecs = 2;
  // The same for codes in bytes, whose sums take a second register.
  static constexpr int kByteKeyRows = 4;
  static constexpr int kWideByteKeyRows = 2;
  static constexpr int kByteValueRows = 4;
  static constexpr bool kDefersBytes = true;  // DotBytes sums in 16 bits

  static Float Set(float x) { return _mm256_set1_ps(x); }
  static Float Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, Float x) { _mm256_storeu_ps(p, x); }
  static Float Add(Float a, Float b) { return _mm256_add_ps(a, b); }
  static Float Sub(Float a, Float b) { return _mm256_sub_ps(a, b); }
  static Float Mul(Float a, Float b) { return _mm256_mul_ps(a, b); }
  static Float Max(Float a, Float b) { return _mm256_max_ps(a, b); }
  static Float Abs(Float x) { return _mm256_andnot_ps(Set(-0.0f), x); }
  static Float Fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  static Float ToFloat(Int x) { return _mm256_cvtepi32_ps(x); }

  static Int SetInt(int32_t x) { return _mm256_set1_epi32(x); }
  static Int LoadInt(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }

  // acc += the dot of each pair of 16-bit integers.
  [[gnu::always_inline]] static void DotPairs(Int& acc, Int a, Int b) {
    Int products;  // with intrinsics GCC spills the accumulators
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
            : "+x"(acc), "=&x"(products)
            : "x"(a), "x"(b));
  }
  // sum += the dot of each pair of unsigned and signed bytes.
  [[gnu::always_inline]] static void DotBytes(Int& sum, Int u, Int s) {
    Int products;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0"
            : "+x"(sum), "=&x"(products)
            : "x"(u), "x"(s));
  }
  // sum + what 16-bit sums of pairs add up to, by lanes of 32 bits.
  static Int Widen(Int sum, Int part) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(part, _mm256_set1_epi16(1)));
  }
  // Bytes to pairs of 16-bit integers, signs extended.
  static Int LoadBytesAsPairs(const std::byte* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // kMask of every byte's bits from kShift on. Requires: none of them crosses into the next byte.
  template <int kShift, int kMask>
  static Int MaskBytes(Int x) {
    return _mm256_and_si256(_mm256_srli_epi16(x, kShift), _mm256_set1_epi8(kMask));
  }

  // The last step of exp2_: p * 2^n with n in the low bits of z; t < -100 and NaN give +0.
  static Float ScaleOrZero(Float p, Float z, Float t) {
    const Float keep = _mm256_cmp_ps(t, Set(kExp2Floor), _CMP_GE_OQ);
    const Int exponent = _mm256_slli_epi32(_mm256_castps_si256(z), 23);
    return _mm256_and_ps(keep,
                         _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent)));
  }
  static float MaxLane(Float x) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
  }
  // Tree 8, 4, 2, 1 over 16 lanes.
  static float TreeSumLanes(const Float* lanes) {
    const __m256 a = _mm256_add_ps(lanes[0], lanes[1]);
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
  }
  // x[b] = max of lanes[b][0..16) for the 8 sub-blocks of a chunk.
  static void MaxOfSubBlocks(const float (*lanes)[kLanes], float* x) {
    const Float low = MaxOfFour(lanes);
    const Float high = MaxOfFour(lanes + 4);
    Store(x, Max(_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)));
  }

  // Pairs (low 16 bits of a, low 16 bits of b) of rounded codes.
  static void StorePairs(int32_t* p, Float a, Float b) {
    const Int high = _mm256_slli_epi32(_mm256_castps_si256(b), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm256_blend_epi16(_mm256_castps_si256(a), high, 0xAA));
  }
  // The low 16 (8) bits of 16 rounded codes.
  static void StoreLowWords(int32_t* p, const Float* codes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), LowBits(codes, 0xffff));
  }
  static void StoreLowBytes(int32_t* p, const Float* codes) {
    const Int words = LowBits(codes, 0xff);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }

 private:
  // 16 words, in order.
  static Int LowBits(const Float* codes, int mask) {
    const Int a = _mm256_and_si256(_mm256_castps_si256(codes[0]), SetInt(mask));
    const Int b = _mm256_and_si256(_mm256_castps_si256(codes[1]), SetInt(mask));
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xD8);
  }
  // Both halves: one value each of lanes[0..4), whose max over the halves is the max of lanes[b].
  static Float MaxOfFour(const float (*lanes)[kLanes]) {
    const auto halves = [&](int b) { return Max(Load(lanes[b]), Load(lanes[b] + 8)); };
    const Float a = halves(0);
    const Float b = halves(1);
    const Float c = halves(2);
    const Float d = halves(3);
    const Float ab = Max(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const Float cd = Max(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    return Max(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xEE));
  }
};

float EncodeQuery(const float* q, int head_dim, int16_t* codes, bool* is_finite) {
  return avx2::EncodeKey(q, head_dim, codes, is_finite);
}

}  // namespace
}  // namespace vericache::kernels

#include "kernels/attention_simd.inl"

namespace vericache::kernels::avx2 {

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

}  // namespace vericache::kernels::avx2
