// Goal: the rotation is the orthonormal Walsh-Hadamard transform of each block, and undoes itself.
// Method: against Sylvester's matrix in binary64, entry by entry.
#include "kernels/hadamard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace vericache::kernels {
namespace {

std::vector<float> Normals(int n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n));
  for (float& value : x) value = normal(random);
  return x;
}

TEST(Hadamard, RotatesEveryBlockByTheMatrix) {
  struct Case {
    int n, block;
  };
  for (const Case& c : {Case{1, 1}, Case{2, 2}, Case{16, 16}, Case{64, 64}, Case{80, 16},
                        Case{96, 32}, Case{128, 128}, Case{7, 1}}) {
    const std::vector<float> x = Normals(c.n);
    std::vector<float> rotated = x;
    Rotate(rotated.data(), c.n);
    for (int i = 0; i < c.n; ++i) {
      const int begin = i / c.block * c.block;
      double sum = 0;
      for (int j = 0; j < c.block; ++j) {
        const bool is_minus = std::popcount(static_cast<uint32_t>((i - begin) & j)) % 2 == 1;
        sum += (is_minus ? -1.0 : 1.0) * x[static_cast<size_t>(begin + j)];
      }
      ASSERT_NEAR(rotated[static_cast<size_t>(i)], sum / std::sqrt(c.block), 1e-5)
          << c.n << " dims, dim " << i;
    }
  }
}

TEST(Hadamard, UndoesItself) {
  for (const int n : {1, 24, 64, 80, 256}) {
    const std::vector<float> x = Normals(n);
    std::vector<float> twice = x;
    Rotate(twice.data(), n);
    Rotate(twice.data(), n);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(twice[i], x[i], 1e-5) << n;
  }
}

}  // namespace
}  // namespace vericache::kernels
