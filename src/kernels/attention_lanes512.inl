// 512-bit vectors of the attention kernels, everything but the integer dots: those differ between
// avx512 and avx512vnni. Included by exactly those two files.
#include <immintrin.h>

#include "kernels/numerics.h"

namespace vericache::kernels {
namespace {

struct Lanes512 {
  using Float = __m512;
  using Int = __m512i;
  static constexpr int kWidth = 16;

  // Tile shapes: accumulators, operands and one product stay within 32 registers.
  static constexpr int kKeyRows = 12;  // many rows against 2 vectors of slots,
  static constexpr int kKeyVecs = 2;
  static constexpr int kWideKeyRows = 6;  // few rows against 4
  static constexpr int kWideKeyVecs = 4;
  static constexpr int kValueRows = 6;  // rows against 4 vectors of dims
  static constexpr int kValueVecs = 4;
  // The same for codes in bytes, whose sums may take a second register.
  static constexpr int kByteKeyRows = 8;
  static constexpr int kWideByteKeyRows = 4;
  static constexpr int kByteValueRows = 4;

  static Float Set(float x) { return _mm512_set1_ps(x); }
  static Float Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, Float x) { _mm512_storeu_ps(p, x); }
  static Float Add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float Sub(Float a, Float b) { return _mm512_sub_ps(a, b); }
  static Float Mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static Float Max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static Float Abs(Float x) { return _mm512_abs_ps(x); }
  static Float Fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static Float ToFloat(Int x) { return _mm512_cvtepi32_ps(x); }

  static Int SetInt(int32_t x) { return _mm512_set1_epi32(x); }
  static Int LoadInt(const std::byte* p) { return _mm512_loadu_si512(p); }

  // Bytes to pairs of 16-bit integers, signs extended.
  static Int LoadBytesAsPairs(const std::byte* p) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  // kMask of every byte's bits from kShift on. Requires: none of them crosses into the next byte.
  template <int kShift, int kMask>
  static Int MaskBytes(Int x) {
    return _mm512_and_si512(_mm512_srli_epi16(x, kShift), _mm512_set1_epi8(kMask));
  }
  // sum + what 16-bit sums of pairs add up to, by lanes of 32 bits.
  static Int Widen(Int sum, Int part) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(part, _mm512_set1_epi16(1)));
  }

  // The last step of exp2_: p * 2^n with n in the low bits of z; t < -100 and NaN give +0.
  static Float ScaleOrZero(Float p, Float z, Float t) {
    const __mmask16 keep = _mm512_cmp_ps_mask(t, Set(kExp2Floor), _CMP_GE_OQ);
    const Int exponent = _mm512_slli_epi32(_mm512_castps_si512(z), 23);
    return _mm512_castsi512_ps(_mm512_maskz_add_epi32(keep, _mm512_castps_si512(p), exponent));
  }
  static float MaxLane(Float x) { return _mm512_reduce_max_ps(x); }
  // Tree 8, 4, 2, 1 over 16 lanes.
  static float TreeSumLanes(const Float* lanes) {
    const __m256 a =
        _mm256_add_ps(_mm512_castps512_ps256(lanes[0]), _mm512_extractf32x8_ps(lanes[0], 1));
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
  }
  // x[b] = max of lanes[b][0..16) for the 8 sub-blocks of a chunk.
  static void MaxOfSubBlocks(const float (*lanes)[kLanes], float* x) {
    const Float low = MaxOfFour(lanes);
    const Float high = MaxOfFour(lanes + 4);
    Float top = Max(_mm512_shuffle_ps(low, high, 0x44), _mm512_shuffle_ps(low, high, 0xEE));
    top = Max(top, _mm512_permute_ps(top, 0xB1));  // quarter b: sub-blocks b, b, b + 4, b + 4
    const Int order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm256_storeu_ps(x, _mm512_castps512_ps256(_mm512_permutexvar_ps(order, top)));
  }

  // Pairs (low 16 bits of a, low 16 bits of b) of rounded codes.
  static void StorePairs(int32_t* p, Float a, Float b) {
    const Int high = _mm512_slli_epi32(_mm512_castps_si512(b), 16);
    _mm512_storeu_si512(p, _mm512_ternarylogic_epi32(_mm512_castps_si512(a), SetInt(0xffff), high,
                                                     0xEA));  // (a & 0xffff) | high
  }
  // The low 16 (8) bits of 16 rounded codes.
  static void StoreLowWords(int32_t* p, const Float* codes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_castps_si512(codes[0])));
  }
  static void StoreLowBytes(int32_t* p, const Float* codes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm512_cvtepi32_epi8(_mm512_castps_si512(codes[0])));
  }

 private:
  // Quarter b: four values whose max is the max of lanes[b].
  static Float MaxOfFour(const float (*lanes)[kLanes]) {
    const Float a = Load(lanes[0]);
    const Float b = Load(lanes[1]);
    const Float c = Load(lanes[2]);
    const Float d = Load(lanes[3]);
    const Float ab = Max(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    const Float cd = Max(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xEE));
    return Max(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
  }
};

}  // namespace
}  // namespace vericache::kernels
