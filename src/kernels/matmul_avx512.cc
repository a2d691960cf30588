// AVX-512 without VNNI: vpmaddubsw in 512 bits.

#include "kernels/matmul_avx512.inl"

namespace vericache::kernels {
namespace {

struct Avx512 : Avx512Lanes {
  static constexpr bool kHasByteDot = false;

  static I MaddBytes(I codes, I q) { return _mm512_maddubs_epi16(codes, q); }
  static I MaddWords(I a, I b) { return _mm512_madd_epi16(a, b); }
  static I Add16(I a, I b) { return _mm512_add_epi16(a, b); }
  static I Add32(I a, I b) { return _mm512_add_epi32(a, b); }
  static I Broadcast4(const int8_t* p) {
    int word;
    __builtin_memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
  }
};

}  // namespace
}  // namespace vericache::kernels

#include "kernels/matmul_simd.inl"

namespace vericache::kernels::avx512 {

void Matmul(const PackedMatrix& w, const Activations& acts, float* y, size_t y_stride,
            int panel_begin, int panel_end) {
  MultiplyPanels<Avx512>(w, acts, {y, y_stride, panel_begin, panel_end});
}

}  // namespace vericache::kernels::avx512
