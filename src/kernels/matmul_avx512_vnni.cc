// AVX-512 with VNNI: vpdpbusd, exact in int32.

#include "kernels/matmul_avx512.inl"

namespace vericache::kernels {
namespace {

struct Avx512Vnni : Avx512Lanes {
  static constexpr bool kHasByteDot = true;

  // acc += codes * the 4 bytes at q, broadcast. Assembly, because GCC 12 forms no embedded
  // broadcast for vpdpbusd.
  [[gnu::always_inline]] static void ByteDot(I& acc, I codes, const int8_t* q) {
    using Word [[gnu::may_alias]] = int32_t;
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(acc)
        : "v"(codes), "m"(*reinterpret_cast<const Word*>(q)));
  }
};

}  // namespace
}  // namespace vericache::kernels

#include "kernels/matmul_simd.inl"

namespace vericache::kernels::avx512vnni {

void Matmul(const PackedMatrix& w, const Activations& acts, float* y, size_t y_stride,
            int panel_begin, int panel_end) {
  MultiplyPanels<Avx512Vnni>(w, acts, {y, y_stride, panel_begin, panel_end});
}

}  // namespace vericache::kernels::avx512vnni
