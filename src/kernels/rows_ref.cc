// The definition of everything that works on one row: quantisation, norm, rotation, gate, residual,
// codes.

#include "kernels/activations.h"
#include "kernels/numerics.h"
#include "kernels/paths.h"

namespace vericache::kernels::ref {
namespace {

// Largest absolute value, compared as integers: order-free, and NaN is above infinity.
uint32_t MaxAbsBits(const float* x, int n) {
  uint32_t top = 0;
  for (int i = 0; i < n; ++i) {
    const uint32_t bits = FloatBits(x[i]) & 0x7fffffffu;
    if (bits > top) top = bits;
  }
  return top;
}

// One block of `n` <= 32 values; those missing count as 0. [1]
void QuantizeBlock(const float* x, int n, int8_t* codes, float* planes, int n_rows) {
  const uint32_t top = MaxAbsBits(x, n);
  const float amax = BitsFloat(top);
  float d = 0.0f;
  float r = 0.0f;
  if (top >= 0x7f800000u) {
    d = BitsFloat(0x7fc00000u);
  } else if (amax >= kActTiny) {
    d = amax / kActCodeMax;
    r = kActCodeMax / amax;
  }
  int sum[2] = {0, 0};
  for (int i = 0; i < kActBlock; ++i) {
    int code = 0;
    if (i < n && r != 0.0f) code = static_cast<int16_t>(FloatBits(x[i] * r + kRoundBias) & 0xffffu);
    codes[i] = static_cast<int8_t>(code);
    sum[i / 16] += code;
  }
  StoreScales(planes, n_rows, d, sum[0], sum[1]);
}

float SumOfSquares(const float* x, int n) {
  float lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) lanes[i % kLanes] = Fma(x[i], x[i], lanes[i % kLanes]);
  return TreeSum(lanes);
}

float Sigmoid(float x) {
  const float e = Exp2(-BitsFloat(FloatBits(x) & 0x7fffffffu) * kLog2E);
  return x >= 0.0f ? 1.0f / (1.0f + e) : e / (1.0f + e);
}

// Copies x with 0 for every NaN or infinity.
void CopyFinite(const float* x, int n, float* out, bool* is_finite) {
  for (int i = 0; i < n; ++i) {
    out[i] = IsFinite(x[i]) ? x[i] : 0.0f;
    if (!IsFinite(x[i])) *is_finite = false;
  }
}

float StoreCodes(const float* x, int n, float step, int16_t* codes) {
  if (!(step > kTinyStep)) {
    for (int i = 0; i < n; ++i) codes[i] = 0;
    return 0.0f;
  }
  const float inverse = 1.0f / step;
  for (int i = 0; i < n; ++i) codes[i] = RoundCode(x[i], inverse);
  return step;
}

}  // namespace

void Quantize(Activations& acts, int block_begin, int block_end) {
  for (int tile_idx = 0; tile_idx < acts.TileCount(); ++tile_idx) {
    const ActTile tile = TileOf(acts, tile_idx);
    for (int r = 0; r < tile.n_rows; ++r) {
      const float* row =
          acts.x + static_cast<size_t>(tile.first_row + r) * static_cast<size_t>(acts.k);
      for (int b = block_begin; b < block_end; ++b) {
        const int begin = b * kActBlock;
        const int n = acts.k - begin < kActBlock ? acts.k - begin : kActBlock;
        QuantizeBlock(row + begin, n, tile.Codes(b, r), tile.Scales(b, r), tile.n_rows);
      }
    }
  }
}

void RmsNorm(const float* x, const float* weight, int n, float eps, float* y) {
  const float mean = SumOfSquares(x, n) / static_cast<float>(n);
  const float inv = 1.0f / __builtin_sqrtf(mean + eps);
  for (int i = 0; i < n; ++i) y[i] = (x[i] * inv) * weight[i];
}

void Rope(float* head, const float* cos_sin, int n_pairs, RopePairs pairs) {
  const bool is_adjacent = pairs == RopePairs::kAdjacent;
  for (int i = 0; i < n_pairs; ++i) {
    float* first = head + (is_adjacent ? 2 * i : i);
    float* second = head + (is_adjacent ? 2 * i + 1 : i + n_pairs);
    const float c = cos_sin[i];
    const float s = cos_sin[n_pairs + i];
    const float x0 = *first;
    const float x1 = *second;
    *first = Fma(x0, c, -(x1 * s));
    *second = Fma(x1, c, x0 * s);
  }
}

void SiluMul(const float* gate, const float* up, int n, float* y) {
  for (int i = 0; i < n; ++i) y[i] = (gate[i] * Sigmoid(gate[i])) * up[i];
}

void Add(float* x, const float* y, int n) {
  for (int i = 0; i < n; ++i) x[i] = x[i] + y[i];
}

float EncodeKey(const float* x, int head_dim, int16_t* codes, bool* is_finite) {
  float finite[kMaxHeadDim];
  CopyFinite(x, head_dim, finite, is_finite);
  const float by_norm = __builtin_sqrtf(SumOfSquares(finite, head_dim)) * kKeyNormInverse;
  const float by_max = BitsFloat(MaxAbsBits(finite, head_dim)) * kKeyCodeInverse;
  float step = by_norm > by_max ? by_norm : by_max;
  if (!IsFinite(step)) {  // the sum of squares overflowed
    step = 0.0f;
    *is_finite = false;
  }
  return StoreCodes(finite, head_dim, step, codes);
}

float EncodeValue(const float* x, int head_dim, int16_t* codes, bool* is_finite) {
  float finite[kMaxHeadDim];
  CopyFinite(x, head_dim, finite, is_finite);
  return StoreCodes(finite, head_dim, BitsFloat(MaxAbsBits(finite, head_dim)) * kValueCodeInverse,
                    codes);
}

}  // namespace vericache::kernels::ref
