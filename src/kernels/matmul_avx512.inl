// Vectors of 16 columns for both AVX-512 paths, which differ in the integer dot alone: they derive
// from Avx512Lanes and add it.

#include <immintrin.h>

#include <utility>

#include "kernels/activations.h"
#include "kernels/packed_layout.h"
#include "kernels/paths.h"

namespace vericache::kernels {
namespace {

struct Avx512Lanes {
  using I = __m512i;
  using F = __m512;
  static constexpr int kWidth = 16;
  static constexpr int kParts = 1;
  static constexpr int kFloatRows = 8;
  static constexpr int kFloatChains = 24;

  static I LoadLine(const std::byte* p) { return _mm512_load_si512(p); }
  static I Bytes(char x) { return _mm512_set1_epi8(x); }
  static I Words(short x) { return _mm512_set1_epi16(x); }
  static I Zero() { return _mm512_setzero_si512(); }
  static I And(I a, I b) { return _mm512_and_si512(a, b); }
  static I OrMasked(I base, I a, I mask) {
    constexpr int kAndOr = 0xEA;  // (a & b) | c
    return _mm512_ternarylogic_epi32(a, mask, base, kAndOr);
  }
  // Within 16 bits; negative counts shift the other way.
  template <int kCount>
  static I ShiftLeft(I a) {
    if constexpr (kCount >= 0) {
      return _mm512_slli_epi16(a, kCount);
    } else {
      return _mm512_srli_epi16(a, -kCount);
    }
  }
  template <int kCount>
  static I ShiftRight(I a) {
    return ShiftLeft<-kCount>(a);
  }
  static I BroadcastInt(const float* p) {
    int word;
    __builtin_memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
  }

  static F ZeroFloat() { return _mm512_setzero_ps(); }
  static F Load(const float* p) { return _mm512_load_ps(p); }
  static void Store(float* p, F x) { _mm512_store_ps(p, x); }
  static void StoreUnaligned(float* p, F x) { _mm512_storeu_ps(p, x); }
  static F LoadF16(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F LoadBf16(const std::byte* p) {
    const I wide = _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  static F LoadU8(const std::byte* p) {
    return ToFloat(_mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static F LoadI8(const std::byte* p) {
    return ToFloat(_mm512_cvtepi8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static F Broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static F ToFloat(I a) { return _mm512_cvtepi32_ps(a); }
  static F Mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F FmaNegated(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
  static void Prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  }
};

}  // namespace
}  // namespace vericache::kernels
