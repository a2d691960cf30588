// The table of the definition: scalar, one value at a time, for ever the oracle of every other
// path.

#include "kernels/paths.h"

namespace vericache::kernels {

const KernelTable& RefKernels() {
  static const KernelTable kTable = {
      .isa = Isa::kRef,
      .name = "ref",
      .quantize = ref::Quantize,
      .matmul = ref::Matmul,
      .rms_norm = ref::RmsNorm,
      .rope = ref::Rope,
      .silu_mul = ref::SiluMul,
      .add = ref::Add,
      .encode_key = ref::EncodeKey,
      .encode_value = ref::EncodeValue,
      .attention = {ref::kAttention[0], ref::kAttention[1], ref::kAttention[2], ref::kAttention[3]},
      .merge = ref::Merge,
      .finish = ref::Finish,
  };
  return kTable;
}

}  // namespace vericache::kernels
