// The table of AVX2, FMA and F16C.

#include "kernels/paths.h"

namespace vericache::kernels {

const KernelTable& Avx2Kernels() {
  static const KernelTable kTable = {
      .isa = Isa::kAvx2,
      .name = "avx2",
      .quantize = avx2::Quantize,
      .matmul = avx2::Matmul,
      .rms_norm = avx2::RmsNorm,
      .rope = avx2::Rope,
      .silu_mul = avx2::SiluMul,
      .add = avx2::Add,
      .encode_key = avx2::EncodeKey,
      .encode_value = avx2::EncodeValue,
      .attention = {avx2::kAttention[0], avx2::kAttention[1], avx2::kAttention[2],
                    avx2::kAttention[3]},
      .merge = avx2::Merge,
      .finish = avx2::Finish,
  };
  return kTable;
}

}  // namespace vericache::kernels
