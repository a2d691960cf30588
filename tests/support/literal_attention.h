// Attention of docs/numerics.md section 3, computed literally from floats: independent of every
// layout, table and helper in src/. Slow; one query head at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace vericache::testing_support {

// exp2_(t), t <= 0.
inline float Exp2Literally(float t) {
  if (!(t >= -100.0f)) return 0.0f;
  const float z = t + 12582912.0f;
  const float n = z - 12582912.0f;
  const float f = t - n;
  float p = std::fma(0x1.5bd97cp-10f, f, 0x1.3ce8b2p-7f);
  p = std::fma(p, f, 0x1.c6b6dap-5f);
  p = std::fma(p, f, 0x1.ebf9c2p-3f);
  p = std::fma(p, f, 0x1.62e42ap-1f);
  p = std::fma(p, f, 1.0f);
  return std::ldexp(p, static_cast<int>(n));
}

// 16 lanes, index mod 16, then a tree.
inline float TreeLiterally(std::vector<float> lanes) {
  for (size_t half = 8; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  return lanes[0];
}

inline float SumOfSquaresLiterally(const float* x, size_t n) {
  std::vector<float> lanes(16, 0.0f);
  for (size_t i = 0; i < n; ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
  return TreeLiterally(lanes);
}

// fma with 1.5 * 2^23: x * scale rounded once, ties to even.
inline int RoundLiterally(float x, float scale) {
  return static_cast<int>(std::fma(x, scale, 12582912.0f) - 12582912.0f);
}

struct LiteralVector {
  std::vector<int> codes;
  float step = 0.0f;
};

// The key rule, which also serves queries, or the value rule. Requires: x finite.
inline LiteralVector EncodeLiterally(const float* x, size_t n, bool is_value) {
  float amax = 0.0f;
  for (size_t i = 0; i < n; ++i) amax = std::max(amax, std::fabs(x[i]));
  const float by_norm = std::sqrt(SumOfSquaresLiterally(x, n)) * (1.0f / 46000.0f);
  const float by_max = amax * (is_value ? 1.0f / 8191.0f : 1.0f / 32767.0f);
  LiteralVector out{.codes = std::vector<int>(n, 0)};
  const float step = is_value ? by_max : std::max(by_norm, by_max);
  if (step <= 0x1p-90f) return out;
  out.step = step;
  for (size_t i = 0; i < n; ++i) out.codes[i] = RoundLiterally(x[i], 1.0f / step);
  return out;
}

struct LiteralSlot {
  LiteralVector key;
  LiteralVector value;
  float bias = 0.0f;  // log2 of the tokens it stands for
};

// A running softmax: maximum, sum and weighted values.
struct LiteralPartial {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
  std::vector<float> out;
};

// One chunk: at most 512 slots, all visible.
inline LiteralPartial ChunkLiterally(const LiteralVector& q, const LiteralSlot* slots, size_t n) {
  const size_t head_dim = q.codes.size();
  const auto scale =
      static_cast<float>(1.4426950408889634074 / std::sqrt(static_cast<double>(head_dim)));
  const float dq = q.step * scale;
  LiteralPartial chunk;
  chunk.out.assign(head_dim, 0.0f);
  std::vector<float> scores(n);
  for (size_t j = 0; j < n; ++j) {
    int64_t dot = 0;
    for (size_t d = 0; d < head_dim; ++d) dot += int64_t{q.codes[d]} * slots[j].key.codes[d];
    scores[j] = std::fma(static_cast<float>(dot) * slots[j].key.step, dq, slots[j].bias);
    chunk.max = std::max(chunk.max, scores[j]);
  }
  std::vector<float> lanes(16, 0.0f);
  for (size_t b = 0; b < n; b += 64) {
    std::vector<float> e(64, 0.0f);
    std::vector<float> p(64, 0.0f);
    for (size_t x = 0; x < 64 && b + x < n; ++x) {
      e[x] = Exp2Literally(scores[b + x] - chunk.max);
      p[x] = e[x] * slots[b + x].value.step;
    }
    float largest = 0.0f;
    for (size_t x = 0; x < 16; ++x) {
      lanes[x] = lanes[x] + ((e[x] + e[x + 16]) + (e[x + 32] + e[x + 48]));
      largest = std::max(largest, (p[x] + p[x + 16]) + (p[x + 32] + p[x + 48]));
    }
    if (largest < 0x1p-90f) continue;
    for (size_t c = 0; c < head_dim; ++c) {
      int64_t acc = 0;
      for (size_t x = 0; x < 64 && b + x < n; ++x) {
        acc += int64_t{RoundLiterally(p[x], 16375.0f / largest)} * slots[b + x].value.codes[c];
      }
      chunk.out[c] = std::fma(static_cast<float>(acc), largest * (1.0f / 16375.0f), chunk.out[c]);
    }
  }
  chunk.sum = TreeLiterally(lanes);
  return chunk;
}

// One query head over the slots it sees, segment by segment.
inline std::vector<float> AttendLiterally(const std::vector<float>& query,
                                          const std::vector<std::vector<LiteralSlot>>& segments) {
  const LiteralVector q = EncodeLiterally(query.data(), query.size(), false);
  LiteralPartial all;
  all.out.assign(query.size(), 0.0f);
  for (const std::vector<LiteralSlot>& slots : segments) {
    for (size_t begin = 0; begin < slots.size(); begin += 512) {
      const size_t n = std::min<size_t>(512, slots.size() - begin);
      const LiteralPartial chunk = ChunkLiterally(q, slots.data() + begin, n);
      const float max = std::max(all.max, chunk.max);
      const float a = Exp2Literally(all.max - max);
      const float b = Exp2Literally(chunk.max - max);
      all.max = max;
      all.sum = std::fma(all.sum, a, chunk.sum * b);
      for (size_t c = 0; c < all.out.size(); ++c) {
        all.out[c] = std::fma(all.out[c], a, chunk.out[c] * b);
      }
    }
  }
  const float inverse = all.sum > 0.0f ? 1.0f / all.sum : 0.0f;
  for (float& x : all.out) x = x * inverse;
  return all.out;
}

}  // namespace vericache::testing_support
