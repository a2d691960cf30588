// AVX-512 F, BW, VL, DQ: 16 lanes are one register.

#include <immintrin.h>

#include "kernels/activations.h"
#include "kernels/numerics.h"
#include "kernels/paths.h"

namespace vericache::kernels {
namespace {

struct Lanes {
  __m512 v;

  static Lanes Set(float x) { return {_mm512_set1_ps(x)}; }
  static Lanes Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  void Store(float* p) const { _mm512_storeu_ps(p, v); }
  // The first `count` lanes; the others are 0.
  static Lanes LoadPartial(const float* p, int count) {
    return {_mm512_maskz_loadu_ps(Mask(count), p)};
  }
  void StorePartial(float* p, int count) const { _mm512_mask_storeu_ps(p, Mask(count), v); }
  // 8 values, each in two neighbouring lanes.
  static Lanes LoadTwice(const float* p) {
    const __m512i order = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return {_mm512_permutexvar_ps(order, _mm512_castps256_ps512(_mm256_loadu_ps(p)))};
  }

  static Lanes Add(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
  static Lanes Sub(Lanes a, Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
  static Lanes Mul(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static Lanes Div(Lanes a, Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
  static Lanes Fma(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static Lanes FmaSub(Lanes a, Lanes b, Lanes c) { return {_mm512_fmsub_ps(a.v, b.v, c.v)}; }
  // a * b - c in even lanes, a * b + c in odd ones.
  static Lanes FmaSubAdd(Lanes a, Lanes b, Lanes c) { return {_mm512_fmaddsub_ps(a.v, b.v, c.v)}; }
  Lanes SwapPairs() const { return {_mm512_permute_ps(v, 0xB1)}; }
  Lanes NegatedAbs() const { return {_mm512_or_ps(v, _mm512_set1_ps(-0.0f))}; }
  // x >= 0 ? yes : no.
  static Lanes SelectNonNegative(Lanes x, Lanes yes, Lanes no) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, _mm512_setzero_ps(), _CMP_GE_OQ), no.v,
                                 yes.v)};
  }
  // The last step of exp2_: p * 2^n with n in the low bits of z; t < -100 and NaN give +0.
  static Lanes ScaleOrZero(Lanes p, Lanes z, Lanes t) {
    const __mmask16 keep = _mm512_cmp_ps_mask(t.v, _mm512_set1_ps(kExp2Floor), _CMP_GE_OQ);
    const __m512i shifted = _mm512_slli_epi32(_mm512_castps_si512(z.v), 23);
    return {_mm512_castsi512_ps(_mm512_maskz_add_epi32(keep, _mm512_castps_si512(p.v), shifted))};
  }

  // Tree 8, 4, 2, 1.
  float TreeSum() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  // Lane-wise maximum of absolute values. Requires: no NaN.
  static Lanes MaxAbs(Lanes a, Lanes b) {
    return {_mm512_max_ps(_mm512_abs_ps(a.v), _mm512_abs_ps(b.v))};
  }
  // Largest absolute bit pattern of all lanes: NaN is above infinity.
  static uint32_t MaxAbsBits(Lanes a, Lanes b) {
    const __m512i top = _mm512_max_epu32(a.AbsBits(), b.AbsBits());
    return static_cast<uint32_t>(_mm512_reduce_max_epu32(top));
  }
  Lanes FiniteOrZero(bool* all_finite) const {
    const __mmask16 finite = _mm512_cmplt_epu32_mask(AbsBits(), _mm512_set1_epi32(0x7f800000));
    if (finite != 0xffff) *all_finite = false;
    return {_mm512_maskz_mov_ps(finite, v)};
  }

  // Rounds to int8, stores 16 of them, returns their sum.
  int StoreInt8(int8_t* p) const {
    const __m512i codes = _mm512_cvtps_epi32(v);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(codes));
    return _mm512_reduce_add_epi32(codes);
  }
  // The low 16 bits of each lane.
  void StoreLowWords(int16_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_castps_si512(v)));
  }

 private:
  static __mmask16 Mask(int count) { return static_cast<__mmask16>((1u << count) - 1u); }
  __m512i AbsBits() const {
    return _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff));
  }
};

}  // namespace
}  // namespace vericache::kernels

#include "kernels/rows_simd.inl"

namespace vericache::kernels::avx512 {

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

}  // namespace vericache::kernels::avx512
