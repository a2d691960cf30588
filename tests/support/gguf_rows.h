// Weights as GGUF stores them, and the matmul of docs/numerics.md computed literally from those
// bytes: independent of every layout, table and helper in src/kernels.
//
// The literal can be told to make one deliberate mistake, so that a comparison can show that it
// would notice.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "kernels/types.h"

namespace vericache::testing_support {

using kernels::WeightType;

inline constexpr WeightType kAllWeightTypes[] = {
    WeightType::kF32,  WeightType::kF16,  WeightType::kBf16, WeightType::kQ8_0,
    WeightType::kQ4_0, WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kQ5_1,
    WeightType::kQ4K,  WeightType::kQ5K,  WeightType::kQ6K};

inline const char* Name(WeightType type) {
  static constexpr const char* kNames[] = {"F32",  "F16",  "BF16", "Q8_0", "Q4_0", "Q4_1",
                                           "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"};
  return kNames[static_cast<int>(type)];
}

// Weights and bytes of a GGUF block, from the format.
struct BlockSize {
  int weights;
  int bytes;
};
inline BlockSize SizeOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return {1, 4};
    case WeightType::kF16:
    case WeightType::kBf16:
      return {1, 2};
    case WeightType::kQ8_0:
      return {32, 2 + 32};
    case WeightType::kQ4_0:
      return {32, 2 + 16};
    case WeightType::kQ4_1:
      return {32, 2 + 2 + 16};
    case WeightType::kQ5_0:
      return {32, 2 + 4 + 16};
    case WeightType::kQ5_1:
      return {32, 2 + 2 + 4 + 16};
    case WeightType::kQ4K:
      return {256, 2 + 2 + 12 + 128};
    case WeightType::kQ5K:
      return {256, 2 + 2 + 12 + 32 + 128};
    case WeightType::kQ6K:
      return {256, 128 + 64 + 16 + 2};
  }
  return {1, 0};
}

// IEEE binary16 by its meaning.
inline float HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) value = mantissa == 0 ? HUGE_VAL : std::nan("");
  return static_cast<float>((bits & 0x8000) != 0 ? -value : value);
}

// Weights of one row and 32-element block: integers with the offset removed, scale of either half,
// minimum. Float types have no such block.
struct LiteralBlock {
  int weights[32];
  float scale[2];
  float min = 0.0f;
  bool has_min = false;
  bool has_halves = false;
};

class GgufRows {
 public:
  // Random codes; scales, minima and floats of the size that models have, some of them 0.
  GgufRows(WeightType type, int n, int k, uint32_t seed) : type_(type), n_(n), k_(k) {
    std::mt19937 rng(seed);
    const BlockSize size = SizeOf(type);
    row_bytes_ = static_cast<size_t>(k / size.weights) * static_cast<size_t>(size.bytes);
    bytes_.resize(row_bytes_ * static_cast<size_t>(n));
    for (auto& byte : bytes_) byte = static_cast<std::byte>(rng() & 255u);
    SetAllScales(rng);
  }

  // Rows read from a file.
  GgufRows(WeightType type, int n, int k, std::vector<std::byte> bytes)
      : type_(type),
        n_(n),
        k_(k),
        row_bytes_(bytes.size() / static_cast<size_t>(n)),
        bytes_(std::move(bytes)) {}

  // Makes every code byte the same: the ends of integer sums.
  void FillCodes(std::byte value) {
    std::fill(bytes_.begin(), bytes_.end(), value);
    std::mt19937 rng(1);
    SetAllScales(rng);
  }

  WeightType type() const { return type_; }
  int n() const { return n_; }
  int k() const { return k_; }
  const std::byte* data() const { return bytes_.data(); }
  const std::byte* Row(int n) const { return &bytes_[static_cast<size_t>(n) * row_bytes_]; }
  bool IsFloat() const { return SizeOf(type_).weights == 1; }

  float FloatWeight(int n, int k) const {
    const std::byte* row = Row(n);
    if (type_ == WeightType::kF32) {
      float value;
      std::memcpy(&value, row + 4 * k, 4);
      return value;
    }
    const uint16_t bits = Half(row + 2 * k);
    if (type_ == WeightType::kF16) return HalfValue(bits);
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }

  LiteralBlock Block(int n, int block) const;

 private:
  static uint16_t Half(const std::byte* p) {
    uint16_t bits;
    std::memcpy(&bits, p, 2);
    return bits;
  }
  static unsigned At(const std::byte* p, int i) { return std::to_integer<unsigned>(p[i]); }

  void ScaleSuperBlock(const std::byte* p, int j, LiteralBlock& out) const;

  void SetAllScales(std::mt19937& rng) {
    const auto step = static_cast<size_t>(SizeOf(type_).bytes);
    for (size_t at = 0; at < bytes_.size(); at += step) SetScales(&bytes_[at], rng);
  }

  void SetScales(std::byte* block, std::mt19937& rng) {
    const auto half = [&](int at) {  // either sign, 2^-11 to 2^-4; one in 32 is 0 or subnormal
      const auto random = static_cast<uint32_t>(rng());
      const uint32_t exponent = random % 32 == 0 ? 0 : 4 + random / 32 % 8;
      const uint32_t mantissa = random >> 16 & (exponent == 0 ? 1u : 1023u);
      const auto stored = static_cast<uint16_t>((random >> 31) << 15 | exponent << 10 | mantissa);
      std::memcpy(block + at, &stored, 2);
    };
    switch (type_) {
      case WeightType::kF32: {
        const float value = std::ldexp(static_cast<float>(static_cast<int32_t>(rng())), -36);
        std::memcpy(block, &value, 4);
        break;
      }
      case WeightType::kBf16: {
        const auto bits = static_cast<uint16_t>((rng() & 0x807fu) | (118 + rng() % 8) << 7);
        std::memcpy(block, &bits, 2);
        break;
      }
      case WeightType::kF16:
      case WeightType::kQ8_0:
      case WeightType::kQ4_0:
      case WeightType::kQ5_0:
        half(0);
        break;
      case WeightType::kQ4_1:
      case WeightType::kQ5_1:
      case WeightType::kQ4K:
      case WeightType::kQ5K:
        half(0);
        half(2);
        break;
      case WeightType::kQ6K:
        half(208);
        break;
    }
  }

  WeightType type_;
  int n_;
  int k_;
  size_t row_bytes_;
  std::vector<std::byte> bytes_;
};

// The scales of block j of the super-block at p: 6 bits of sc and mn, or for Q6_K 8 bits a half.
inline void GgufRows::ScaleSuperBlock(const std::byte* p, int j, LiteralBlock& out) const {
  if (type_ == WeightType::kQ4K || type_ == WeightType::kQ5K) {
    const unsigned sc = j < 4 ? At(p, 4 + j) & 63u : (At(p, 8 + j) & 15u) | (At(p, j) >> 6) << 4;
    const unsigned mn = j < 4 ? At(p, 8 + j) & 63u : At(p, 8 + j) >> 4 | (At(p, 4 + j) >> 6) << 4;
    out.scale[0] *= static_cast<float>(sc);
    out.min = -(out.min * static_cast<float>(mn));
  }
  out.scale[1] = out.scale[0];
  if (type_ == WeightType::kQ6K) {
    out.has_halves = true;
    for (int h = 0; h < 2; ++h) {
      const auto sc = static_cast<int8_t>(At(p, 192 + 2 * j + h));
      out.scale[h] = HalfValue(Half(p + 208)) * static_cast<float>(sc);
    }
  }
}

inline LiteralBlock GgufRows::Block(int n, int block) const {
  const BlockSize size = SizeOf(type_);
  const int in_super = block % 8;
  const int stored = size.weights == 256 ? block / 8 : block;
  const std::byte* p = Row(n) + static_cast<size_t>(stored) * static_cast<size_t>(size.bytes);
  LiteralBlock out;
  const auto f16 = [&](int at) { return HalfValue(Half(p + at)); };
  out.scale[0] = f16(0);
  out.has_min = size.bytes == 20 || size.bytes == 24 || size.bytes == 144 || size.bytes == 176;
  if (out.has_min) out.min = f16(2);
  const int header = out.has_min ? 4 : 2;
  for (int i = 0; i < 32; ++i) {
    const int half = i / 16;
    const auto nibble = [&](int at) {
      return static_cast<int>(At(p, at + i % 16) >> 4 * half & 15u);
    };
    const auto fifth = [&](int at) {
      return static_cast<int>(At(p, at + i / 8) >> i % 8 & 1u) * 16;
    };
    switch (type_) {
      case WeightType::kQ8_0:
        out.weights[i] = static_cast<int8_t>(At(p, 2 + i));
        break;
      case WeightType::kQ4_0:
        out.weights[i] = nibble(header) - 8;
        break;
      case WeightType::kQ4_1:
        out.weights[i] = nibble(header);
        break;
      case WeightType::kQ5_0:
        out.weights[i] = nibble(header + 4) + fifth(header) - 16;
        break;
      case WeightType::kQ5_1:
        out.weights[i] = nibble(header + 4) + fifth(header);
        break;
      case WeightType::kQ4K:
      case WeightType::kQ5K: {
        const bool is_five = type_ == WeightType::kQ5K;
        const int at = (is_five ? 48 : 16) + in_super / 2 * 32 + i;
        const int low = static_cast<int>(At(p, at) >> in_super % 2 * 4 & 15u);
        const int high = is_five ? static_cast<int>(At(p, 16 + i) >> in_super & 1u) * 16 : 0;
        out.weights[i] = low + high;
        break;
      }
      case WeightType::kQ6K: {
        // Each half of 128 weights: quarters c = 0..3 of 32; low nibbles of c and c + 2 share
        // bytes.
        const int upper_half = in_super / 4;
        const int c = in_super % 4;
        const int low =
            static_cast<int>(At(p, upper_half * 64 + c % 2 * 32 + i) >> c / 2 * 4 & 15u);
        const int high = static_cast<int>(At(p, 128 + upper_half * 32 + i) >> 2 * c & 3u);
        out.weights[i] = low + 16 * high - 32;
        break;
      }
      default:
        break;
    }
  }
  ScaleSuperBlock(p, in_super, out);
  return out;
}

// ---- the definition, literally ------------------------------------------------------------------

enum class Mistake {
  kNone,
  kUnfusedStep,       // acc + idot * (dw * d)
  kOtherAssociation,  // (idot * dw) * d
  kMinFirst,          // the step of the minimum before that of the dot
  kMergedHalves,      // Q6_K: both halves rounded together
  kDividedCodes,      // q = round(x / d)
  kRoundedHalfAway,   // q rounded half away from zero
  kReversedInputs,    // float types: k descending
};

// One row's codes of one block: numerics section 1.
struct LiteralCodes {
  int q[32];
  float d;
  float s;
};

inline LiteralCodes QuantizeLiterally(const float* x, Mistake mistake = Mistake::kNone) {
  LiteralCodes out{};
  float amax = 0.0f;
  bool is_finite = true;
  for (int i = 0; i < 32; ++i) {
    if (!std::isfinite(x[i])) is_finite = false;
    amax = std::fmax(amax, std::fabs(x[i]));
  }
  if (!is_finite) {
    out.d = out.s = std::numeric_limits<float>::quiet_NaN();
    return out;
  }
  if (amax < 0x1p-100f) return out;
  out.d = amax / 127.0f;
  const float r = 127.0f / amax;
  int sum = 0;
  for (int i = 0; i < 32; ++i) {
    const float scaled = mistake == Mistake::kDividedCodes ? x[i] / out.d : x[i] * r;
    out.q[i] = static_cast<int>(mistake == Mistake::kRoundedHalfAway ? std::round(scaled)
                                                                     : std::nearbyint(scaled));
    sum += out.q[i];
  }
  out.s = out.d * static_cast<float>(sum);
  return out;
}

inline float StepLiterally(const LiteralBlock& w, const LiteralCodes& x, float acc,
                           Mistake mistake = Mistake::kNone) {
  int dot[2] = {0, 0};
  for (int i = 0; i < 32; ++i) dot[i / 16] += w.weights[i] * x.q[i];
  const auto step = [&](int idot, float scale) {
    const auto f = static_cast<float>(idot);
    if (mistake == Mistake::kUnfusedStep) return acc + f * (scale * x.d);
    if (mistake == Mistake::kOtherAssociation) return std::fma(f * scale, x.d, acc);
    return std::fma(f, scale * x.d, acc);
  };
  if (w.has_halves) {
    if (mistake == Mistake::kMergedHalves) {
      const float low = static_cast<float>(dot[0]) * (w.scale[0] * x.d);
      return acc + std::fma(static_cast<float>(dot[1]), w.scale[1] * x.d, low);
    }
    acc = step(dot[0], w.scale[0]);
    return step(dot[1], w.scale[1]);
  }
  if (mistake == Mistake::kMinFirst && w.has_min) {
    acc = std::fma(w.min, x.s, acc);
    return step(dot[0] + dot[1], w.scale[0]);
  }
  acc = step(dot[0] + dot[1], w.scale[0]);
  return w.has_min ? std::fma(w.min, x.s, acc) : acc;
}

// y [n_rows, n] of x [n_rows, k].
inline std::vector<float> MultiplyLiterally(const GgufRows& w, const std::vector<float>& x,
                                            int n_rows, Mistake mistake = Mistake::kNone) {
  const auto k = static_cast<size_t>(w.k());
  std::vector<float> y(static_cast<size_t>(n_rows) * static_cast<size_t>(w.n()));
  for (int row = 0; row < n_rows; ++row) {
    const float* x_row = x.data() + static_cast<size_t>(row) * k;
    std::vector<LiteralCodes> codes;
    if (!w.IsFloat()) {
      for (size_t b = 0; b < k / 32; ++b)
        codes.push_back(QuantizeLiterally(x_row + 32 * b, mistake));
    }
    for (int n = 0; n < w.n(); ++n) {
      float acc = 0.0f;
      for (size_t b = 0; b < codes.size(); ++b) {
        acc = StepLiterally(w.Block(n, static_cast<int>(b)), codes[b], acc, mistake);
      }
      for (int i = 0; w.IsFloat() && i < w.k(); ++i) {
        const int at = mistake == Mistake::kReversedInputs ? w.k() - 1 - i : i;
        const float weight = w.FloatWeight(n, at);
        acc = mistake == Mistake::kUnfusedStep ? acc + weight * x_row[at]
                                               : std::fma(weight, x_row[at], acc);
      }
      y[static_cast<size_t>(row) * static_cast<size_t>(w.n()) + static_cast<size_t>(n)] = acc;
    }
  }
  return y;
}

}  // namespace vericache::testing_support
