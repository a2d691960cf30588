// The table of AVX-512 with VNNI: other integer dots, the rest as avx512.

#include "kernels/paths.h"

namespace vericache::kernels {

const KernelTable& Avx512VnniKernels() {
  static const KernelTable kTable = [] {
    KernelTable table = Avx512Kernels();
    table.isa = Isa::kAvx512Vnni;
    table.name = "avx512vnni";
    table.matmul = avx512vnni::Matmul;
    return table;
  }();
  return kTable;
}

}  // namespace vericache::kernels
