// AVX2 + FMA + F16C: 8 columns a vector, vpmaddubsw for the integer dots.

#include <immintrin.h>

#include <utility>

#include "kernels/activations.h"
#include "kernels/packed_layout.h"
#include "kernels/paths.h"

namespace vericache::kernels {
namespace {

struct Avx2 {
  using I = __m256i;
  using F = __m256;
  static constexpr int kWidth = 8;
  static constexpr int kParts = kPanelColumns / kWidth;
  static constexpr bool kHasByteDot = false;
  static constexpr int kFloatRows = 6;
  static constexpr int kFloatChains = 12;

  static I LoadLine(const std::byte* p) { return _mm256_load_si256(reinterpret_cast<const I*>(p)); }
  static I Bytes(char x) { return _mm256_set1_epi8(x); }
  static I Words(short x) { return _mm256_set1_epi16(x); }
  static I Zero() { return _mm256_setzero_si256(); }
  static I And(I a, I b) { return _mm256_and_si256(a, b); }
  static I OrMasked(I base, I a, I mask) { return _mm256_or_si256(base, And(a, mask)); }
  // Within 16 bits; negative counts shift the other way.
  template <int kCount>
  static I ShiftLeft(I a) {
    if constexpr (kCount >= 0) {
      return _mm256_slli_epi16(a, kCount);
    } else {
      return _mm256_srli_epi16(a, -kCount);
    }
  }
  template <int kCount>
  static I ShiftRight(I a) {
    return ShiftLeft<-kCount>(a);
  }
  static I MaddBytes(I codes, I q) { return _mm256_maddubs_epi16(codes, q); }
  static I MaddWords(I a, I b) { return _mm256_madd_epi16(a, b); }
  static I Add16(I a, I b) { return _mm256_add_epi16(a, b); }
  static I Add32(I a, I b) { return _mm256_add_epi32(a, b); }
  static I Broadcast4(const int8_t* p) {
    int word;
    __builtin_memcpy(&word, p, sizeof word);
    return _mm256_set1_epi32(word);
  }
  static I BroadcastInt(const float* p) { return _mm256_castps_si256(Broadcast(p)); }

  static F ZeroFloat() { return _mm256_setzero_ps(); }
  static F Load(const float* p) { return _mm256_load_ps(p); }
  static void Store(float* p, F x) { _mm256_store_ps(p, x); }
  static void StoreUnaligned(float* p, F x) { _mm256_storeu_ps(p, x); }
  static F LoadF16(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static F LoadBf16(const std::byte* p) {
    const I wide = _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  static F LoadU8(const std::byte* p) {
    return ToFloat(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static F LoadI8(const std::byte* p) {
    return ToFloat(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static F Broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static F ToFloat(I a) { return _mm256_cvtepi32_ps(a); }
  static F Mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F Fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F FmaNegated(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
  static void Prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  }
};

}  // namespace
}  // namespace vericache::kernels

#include "kernels/matmul_simd.inl"

namespace vericache::kernels::avx2 {

void Matmul(const PackedMatrix& w, const Activations& acts, float* y, size_t y_stride,
            int panel_begin, int panel_end) {
  MultiplyPanels<Avx2>(w, acts, {y, y_stride, panel_begin, panel_end});
}

}  // namespace vericache::kernels::avx2
