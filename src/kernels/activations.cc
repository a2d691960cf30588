#include "kernels/activations.h"

#include "kernels/kernels.h"

namespace vericache::kernels {

void ShapeActivations(Activations& acts, const float* x, int n_rows, int k) {
  acts.n_rows = n_rows;
  acts.k = k;
  acts.x = x;
  const size_t n_blocks = static_cast<size_t>(n_rows) * static_cast<size_t>(ActBlockCount(k));
  acts.codes.Ensure(n_blocks * kActBlock);
  acts.scales.Ensure(n_blocks * kScalePlanes * sizeof(float));
}

}  // namespace vericache::kernels
