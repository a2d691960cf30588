// The table of AVX-512 with VNNI: other integer dots, the rest as avx512.

#include "kernels/paths.h"

namespace vericache::kernels {

const KernelTable& Avx512VnniKernels() {
  static const KernelTable kTable = [] {
    KernelTable table = Avx512Kernels();
    table.isa = Isa::kAvx512Vnni;
    table.name = "avx512vnni";
    table.matmul = avx512vnni::Matmul;
    for (int format = 0; format < kKvFormatCount; ++format) {
      table.attention[format] = avx512vnni::kAttention[format];
    }
    return table;
  }();
  return kTable;
}

}  // namespace vericache::kernels
