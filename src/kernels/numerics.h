// Constants and scalar steps of the definition, shared by every path.
//
// Everything here has internal linkage and uses builtins instead of std functions: this header is
// compiled once per instruction set, and an inline function with external linkage would let the
// linker put AVX-512 code into the path of a smaller machine. Source: docs/numerics.md, sections in
// brackets.
#pragma once

#include <cstdint>

namespace vericache::kernels {

inline constexpr int kNumericsRevision = 1;

// 1.5 * 2^23: adding it rounds |x| < 2^22 to an integer, ties to even, which then stands in the low
// bits.
inline constexpr float kRoundBias = 12582912.0f;
inline constexpr int kLanes =
    16;  // partial sums of every float reduction: index mod 16, then a tree 8, 4, 2, 1

// Activations [1].
inline constexpr float kActCodeMax = 127.0f;
inline constexpr float kActTiny = 0x1p-100f;  // a block whose amax is below has step 0

// Codes of K, q and V, and of the softmax weights [3]. fl(1/c) is the F32 reciprocal, multiplied.
// Two key vectors have |codes|_2 <= 46006, so that their dot stays below 2^31. Only where |x|_2 is
// below 2^-60 the sum of squares underflows and the bound is lost: dots therefore wrap, alike on
// every path, and such a score stays below 2^-44 * dq.
inline constexpr float kKeyNormInverse = 1.0f / 46000.0f;
inline constexpr float kKeyCodeInverse = 1.0f / 32767.0f;   // |code| <= 32767
inline constexpr float kValueCodeInverse = 1.0f / 8191.0f;  // |code| <= 8191
inline constexpr float kWeightCodeMax = 16375.0f;  // sum of P <= 16 * 16375 + 32; times 8191 < 2^31
inline constexpr float kWeightCodeInverse = 1.0f / 16375.0f;
// Packed formats (docs/kv_format.md): 16-bit codes of q' and P for Q8, 8-bit ones for Q4 and Q2.
inline constexpr float kWideCodeMax = 32767.0f;
inline constexpr float kWideCodeInverse = 1.0f / 32767.0f;
inline constexpr float kByteQueryInverse = 1.0f / 127.0f;
inline constexpr float kByteWeightMax = 255.0f;
inline constexpr float kByteWeightInverse = 1.0f / 255.0f;
inline constexpr float kTinyStep = 0x1p-90f;  // a step up to here counts as 0, an X below it

inline constexpr float kLog2E = 0x1.715476p+0f;  // fl(log2 e)

// exp2_ [3]: Horner from kExp2C5 down to 1.
inline constexpr float kExp2Floor = -100.0f;  // below: +0
inline constexpr float kExp2C5 = 0x1.5bd97cp-10f;
inline constexpr float kExp2C4 = 0x1.3ce8b2p-7f;
inline constexpr float kExp2C3 = 0x1.c6b6dap-5f;
inline constexpr float kExp2C2 = 0x1.ebf9c2p-3f;
inline constexpr float kExp2C1 = 0x1.62e42ap-1f;

[[gnu::always_inline]] static inline uint32_t FloatBits(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
[[gnu::always_inline]] static inline float BitsFloat(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
[[gnu::always_inline]] static inline float Fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
[[gnu::always_inline]] static inline bool IsFinite(float x) {
  return (FloatBits(x) & 0x7fffffffu) < 0x7f800000u;
}

// exp2_(t), t <= 0 or NaN. Relative error below 1.51e-7; t < -100, -inf and NaN give +0. [3]
static inline float Exp2(float t) {
  const float z = t + kRoundBias;
  const float n = z - kRoundBias;
  const float f = t - n;
  float p = Fma(kExp2C5, f, kExp2C4);
  p = Fma(p, f, kExp2C3);
  p = Fma(p, f, kExp2C2);
  p = Fma(p, f, kExp2C1);
  p = Fma(p, f, 1.0f);
  return t >= kExp2Floor ? BitsFloat(FloatBits(p) + (FloatBits(z) << 23)) : 0.0f;
}

// Sum of 16 lanes: tree 8, 4, 2, 1. Modifies: lanes.
static inline float TreeSum(float (&lanes)[kLanes]) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] = lanes[i] + lanes[i + width];
  }
  return lanes[0];
}

// Rounds to an integer of at most 16 bits, ties to even: x * scale fused. [3]
[[gnu::always_inline]] static inline int16_t RoundCode(float x, float scale) {
  return static_cast<int16_t>(FloatBits(Fma(x, scale, kRoundBias)) & 0xffffu);
}

// fl(log2(e) / sqrt(head_dim)): turns step_q into dq, so that scores are in log2 units. [3]
static inline float ScoreScale(int head_dim) {
  return static_cast<float>(1.4426950408889634074 / __builtin_sqrt(static_cast<double>(head_dim)));
}

}  // namespace vericache::kernels
