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
      .attention = {ref::kAttention[0], ref::kAttention[1], ref::kAttention[2],
                    ref::kAttention[3]},
      .merge = ref::Merge,
      .finish = ref::Finish,
  };
  return kTable;
}

}  // namespace vericache::kernels
