// Runs the matmul of one path on test inputs: what its tests and benchmarks share.
#pragma once

#include <vector>

#include "kernels/kernels.h"
#include "tests/support/gguf_rows.h"

namespace vericache::testing_support {

inline kernels::PackedMatrix Pack(const GgufRows& rows) {
  kernels::PackedMatrix w = kernels::ShapePackedMatrix(rows.type(), rows.n(), rows.k());
  kernels::PackPanels(w, rows.data(), 0, w.n_panels);
  return w;
}

// Activations with a few loud channels; rows of it are used at any offset.
inline std::vector<float> RandomActivations(int n_rows, int k, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n_rows) * static_cast<size_t>(k));
  for (float& value : x) value = normal(rng) * (rng() % 50 == 0 ? 20.0f : 1.0f);
  return x;
}

struct MatmulCall {
  const float* x = nullptr;
  int n_rows = 1;
  size_t y_stride = 0;               // 0: w.n
  std::vector<int> panel_cuts = {};  // where the panels are split between calls
  size_t y_offset = 0;               // floats by which y is off a cache line
};

inline constexpr float kUntouched = -7.0f;

// Quantises and multiplies; returns y with its stride, everything not written being kUntouched.
inline std::vector<float> Multiply(const kernels::KernelTable& path, const kernels::PackedMatrix& w,
                                   const MatmulCall& call) {
  kernels::Activations acts;
  kernels::ShapeActivations(acts, call.x, call.n_rows, w.k);
  if (kernels::IsQuantized(w.type)) {
    const int n_blocks = w.k / kernels::kActBlock;
    path.quantize(acts, 0, n_blocks / 2);
    path.quantize(acts, n_blocks / 2, n_blocks);
  }
  const size_t stride = call.y_stride != 0 ? call.y_stride : static_cast<size_t>(w.n);
  std::vector<float> y(static_cast<size_t>(call.n_rows) * stride + call.y_offset, kUntouched);
  std::vector<int> cuts = call.panel_cuts;
  cuts.push_back(w.n_panels);
  int begin = 0;
  for (const int end : cuts) {
    path.matmul(w, acts, y.data() + call.y_offset + begin * kernels::kPanelColumns, stride, begin,
                end);
    begin = end;
  }
  y.erase(y.begin(), y.begin() + static_cast<ptrdiff_t>(call.y_offset));
  return y;
}

}  // namespace vericache::testing_support
