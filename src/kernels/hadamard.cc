#include "kernels/hadamard.h"

#include <cmath>

namespace vericache::kernels {

void Rotate(float* x, int n) {
  const int block = n & -n;
  const float scale = 1.0f / std::sqrt(static_cast<float>(block));
  // Blocks lie one behind the other, and no butterfly of a power of two below their size leaves
  // its own.
  for (int half = 1; half < block; half *= 2) {
    for (int begin = 0; begin < n; begin += 2 * half) {
      for (int i = begin; i < begin + half; ++i) {
        const float sum = x[i] + x[i + half];
        x[i + half] = x[i] - x[i + half];
        x[i] = sum;
      }
    }
  }
  for (int i = 0; i < n; ++i) x[i] *= scale;
}

}  // namespace vericache::kernels
