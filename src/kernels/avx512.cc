// The table of AVX-512 F, BW, VL and DQ, without VNNI.

#include "kernels/paths.h"

namespace vericache::kernels {

const KernelTable& Avx512Kernels() {
  static const KernelTable kTable = {
      .isa = Isa::kAvx512,
      .name = "avx512",
      .quantize = avx512::Quantize,
      .matmul = avx512::Matmul,
      .rms_norm = avx512::RmsNorm,
      .rope = avx512::Rope,
      .silu_mul = avx512::SiluMul,
      .add = avx512::Add,
      .encode_key = avx512::EncodeKey,
      .encode_value = avx512::EncodeValue,
      .attention = {avx512::kAttention[0], avx512::kAttention[1], avx512::kAttention[2],
                    avx512::kAttention[3]},
      .merge = avx512::Merge,
      .finish = avx512::Finish,
  };
  return kTable;
}

}  // namespace vericache::kernels
