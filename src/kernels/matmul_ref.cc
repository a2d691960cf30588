// The definition of the matmul, one output value at a time. [numerics 2]

#include "base/f16.h"
#include "kernels/activations.h"
#include "kernels/numerics.h"
#include "kernels/packed_layout.h"
#include "kernels/paths.h"

namespace vericache::kernels::ref {
namespace {

// acc of one row and column after one block.
float Step(const PackedLayout& layout, const WeightBlock& block, const int8_t* q,
           const float* scales, int n_rows, float acc) {
  const float d = scales[kPlaneStep * n_rows];
  const float s = scales[kPlaneSum * n_rows];
  int32_t dot[2] = {0, 0};
  for (int i = 0; i < kActBlock; ++i) dot[i / 16] += block.weights[i] * q[i];
  if (layout.has_halves) {
    for (int h = 0; h < 2; ++h) acc = Fma(static_cast<float>(dot[h]), block.scale[h] * d, acc);
    return acc;
  }
  acc = Fma(static_cast<float>(dot[0] + dot[1]), block.scale[0] * d, acc);
  return layout.has_min ? Fma(block.min, s, acc) : acc;
}

// Column `n` of the rows of one tile. y points at the column in the tile's first row.
void QuantizedColumn(const PackedMatrix& w, const ActTile& tile, int n, float* y, size_t y_stride) {
  const PackedLayout layout = LayoutOf(w.type);
  float acc[kMaxTileRows] = {};
  for (int b = 0; b < w.k / kActBlock; ++b) {
    const WeightBlock block = UnpackBlock(w, n, b);
    for (int r = 0; r < tile.n_rows; ++r) {
      acc[r] = Step(layout, block, tile.Codes(b, r), tile.Scales(b, r), tile.n_rows, acc[r]);
    }
  }
  for (int r = 0; r < tile.n_rows; ++r) y[static_cast<size_t>(r) * y_stride] = acc[r];
}

float FloatWeight(const PackedMatrix& w, int n, int k) {
  const std::byte* panel = w.Panel(n / kPanelColumns);
  const size_t at = static_cast<size_t>(k) * kPanelColumns + static_cast<size_t>(n % kPanelColumns);
  if (w.type == WeightType::kF32) return reinterpret_cast<const float*>(panel)[at];
  const uint16_t bits = reinterpret_cast<const uint16_t*>(panel)[at];
  return w.type == WeightType::kF16 ? F16ToF32(bits) : Bf16ToF32(bits);
}

// Column `n` of every row. y points at the column in row 0.
void FloatColumn(const PackedMatrix& w, const Activations& acts, int n, float* y, size_t y_stride) {
  for (int tile_idx = 0; tile_idx < acts.TileCount(); ++tile_idx) {
    const int begin = acts.TileBegin(tile_idx);
    const int end = acts.TileBegin(tile_idx + 1);
    float acc[kMaxTileRows] = {};
    for (int k = 0; k < w.k; ++k) {
      const float weight = FloatWeight(w, n, k);
      for (int r = begin; r < end; ++r) {
        const float x =
            acts.x[static_cast<size_t>(r) * static_cast<size_t>(w.k) + static_cast<size_t>(k)];
        acc[r - begin] = Fma(weight, x, acc[r - begin]);
      }
    }
    for (int r = begin; r < end; ++r) y[static_cast<size_t>(r) * y_stride] = acc[r - begin];
  }
}

}  // namespace

void Matmul(const PackedMatrix& w, const Activations& acts, float* y, size_t y_stride,
            int panel_begin, int panel_end) {
  const int first = panel_begin * kPanelColumns;
  for (int n = first; n < panel_end * kPanelColumns && n < w.n; ++n) {
    float* column = y + (n - first);
    if (!IsQuantized(w.type)) {
      FloatColumn(w, acts, n, column, y_stride);
      continue;
    }
    for (int tile_idx = 0; tile_idx < acts.TileCount(); ++tile_idx) {
      const ActTile tile = TileOf(acts, tile_idx);
      QuantizedColumn(w, tile, n, column + static_cast<size_t>(tile.first_row) * y_stride,
                      y_stride);
    }
  }
}

}  // namespace vericache::kernels::ref
