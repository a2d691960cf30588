// AVX2 + FMA: 16 lanes are two registers.

#include <immintrin.h>

#include "kernels/activations.h"
#include "kernels/numerics.h"
#include "kernels/paths.h"

namespace vericache::kernels {
namespace {

struct Lanes {
  __m256 low;
  __m256 high;

  static Lanes Set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Lanes Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  void Store(float* p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
  // The first `count` lanes; the others are 0.
  static Lanes LoadPartial(const float* p, int count) {
    return {_mm256_maskload_ps(p, Mask(count)), _mm256_maskload_ps(p + 8, Mask(count - 8))};
  }
  void StorePartial(float* p, int count) const {
    _mm256_maskstore_ps(p, Mask(count), low);
    _mm256_maskstore_ps(p + 8, Mask(count - 8), high);
  }
  // 8 values, each in two neighbouring lanes.
  static Lanes LoadTwice(const float* p) {
    const __m256 v = _mm256_loadu_ps(p);
    return {_mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
            _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))};
  }

  static Lanes Add(Lanes a, Lanes b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static Lanes Sub(Lanes a, Lanes b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  static Lanes Mul(Lanes a, Lanes b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static Lanes Div(Lanes a, Lanes b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static Lanes Fma(Lanes a, Lanes b, Lanes c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static Lanes FmaSub(Lanes a, Lanes b, Lanes c) {
    return {_mm256_fmsub_ps(a.low, b.low, c.low), _mm256_fmsub_ps(a.high, b.high, c.high)};
  }
  // a * b - c in even lanes, a * b + c in odd ones.
  static Lanes FmaSubAdd(Lanes a, Lanes b, Lanes c) {
    return {_mm256_fmaddsub_ps(a.low, b.low, c.low), _mm256_fmaddsub_ps(a.high, b.high, c.high)};
  }
  Lanes SwapPairs() const { return {_mm256_permute_ps(low, 0xB1), _mm256_permute_ps(high, 0xB1)}; }
  Lanes NegatedAbs() const {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_or_ps(low, sign), _mm256_or_ps(high, sign)};
  }
  // x >= 0 ? yes : no.
  static Lanes SelectNonNegative(Lanes x, Lanes yes, Lanes no) {
    const auto select = [](__m256 v, __m256 y, __m256 n) {
      return _mm256_blendv_ps(n, y, _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_GE_OQ));
    };
    return {select(x.low, yes.low, no.low), select(x.high, yes.high, no.high)};
  }
  // The last step of exp2_: p * 2^n with n in the low bits of z; t < -100 and NaN give +0.
  static Lanes ScaleOrZero(Lanes p, Lanes z, Lanes t) {
    const auto scale = [](__m256 v, __m256 exponent, __m256 x) {
      const __m256i shifted = _mm256_slli_epi32(_mm256_castps_si256(exponent), 23);
      const __m256 scaled = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), shifted));
      return _mm256_and_ps(scaled, _mm256_cmp_ps(x, _mm256_set1_ps(kExp2Floor), _CMP_GE_OQ));
    };
    return {scale(p.low, z.low, t.low), scale(p.high, z.high, t.high)};
  }

  // Tree 8, 4, 2, 1.
  float TreeSum() const {
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  // Lane-wise maximum of absolute values. Requires: no NaN.
  static Lanes MaxAbs(Lanes a, Lanes b) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_max_ps(_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, b.low)),
            _mm256_max_ps(_mm256_andnot_ps(sign, a.high), _mm256_andnot_ps(sign, b.high))};
  }
  // Largest absolute bit pattern of all lanes: NaN is above infinity.
  static uint32_t MaxAbsBits(Lanes a, Lanes b) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    const auto bits = [&](__m256 v) { return _mm256_and_si256(_mm256_castps_si256(v), mask); };
    const __m256i eight = _mm256_max_epu32(_mm256_max_epu32(bits(a.low), bits(a.high)),
                                           _mm256_max_epu32(bits(b.low), bits(b.high)));
    const __m128i four =
        _mm_max_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4E));
    return static_cast<uint32_t>(
        _mm_cvtsi128_si32(_mm_max_epu32(two, _mm_shuffle_epi32(two, 0xB1))));
  }
  Lanes FiniteOrZero(bool* all_finite) const {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    const __m256i infinity = _mm256_set1_epi32(0x7f800000);
    const auto finite = [&](__m256 v) {
      return _mm256_castsi256_ps(
          _mm256_cmpgt_epi32(infinity, _mm256_and_si256(_mm256_castps_si256(v), mask)));
    };
    const __m256 keep_low = finite(low);
    const __m256 keep_high = finite(high);
    if ((_mm256_movemask_ps(keep_low) & _mm256_movemask_ps(keep_high)) != 0xff) *all_finite = false;
    return {_mm256_and_ps(low, keep_low), _mm256_and_ps(high, keep_high)};
  }

  // Rounds to int8, stores 16 of them, returns their sum.
  int StoreInt8(int8_t* p) const {
    const __m256i a = _mm256_cvtps_epi32(low);
    const __m256i b = _mm256_cvtps_epi32(high);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
    const __m256i pairs = _mm256_madd_epi16(words, _mm256_set1_epi16(1));
    const __m128i four =
        _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
  }
  // The low 16 bits of each lane.
  void StoreLowWords(int16_t* p) const {
    // Sign-extended first, so that the saturating pack keeps every bit.
    const auto extend = [](__m256 v) {
      return _mm256_srai_epi32(_mm256_slli_epi32(_mm256_castps_si256(v), 16), 16);
    };
    const __m256i words = _mm256_packs_epi32(extend(low), extend(high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(words, 0xD8));
  }

 private:
  static __m256i Mask(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace
}  // namespace vericache::kernels

#include "kernels/rows_simd.inl"

namespace vericache::kernels::avx2 {

void Quantize(Activations& acts, int block_begin, int block_end) {
  QuantizeRows(acts, block_begin, block_end);
}

void RmsNorm(const float* x, const float* weight, int n, float eps, float* y) {
  NormRow(x, weight, n, eps, y);
}

void Rope(float* head, const float* cos_sin, int n_pairs, RopePairs pairs) {
  if (pairs == RopePairs::kAdjacent) {
    RotateAdjacent(head, cos_sin, n_pairs);
  } else {
    RotateHalves(head, cos_sin, n_pairs);
  }
}

void SiluMul(const float* gate, const float* up, int n, float* y) { GateRow(gate, up, n, y); }

void Add(float* x, const float* y, int n) { AddRow(x, y, n); }

float EncodeKey(const float* x, int head_dim, int16_t* codes, bool* is_finite) {
  if (head_dim % kLanes != 0) return ref::EncodeKey(x, head_dim, codes, is_finite);
  return EncodeKeyRow(x, head_dim, codes, is_finite);
}

float EncodeValue(const float* x, int head_dim, int16_t* codes, bool* is_finite) {
  if (head_dim % kLanes != 0) return ref::EncodeValue(x, head_dim, codes, is_finite);
  return EncodeValueRow(x, head_dim, codes, is_finite);
}

}  // namespace vericache::kernels::avx2
