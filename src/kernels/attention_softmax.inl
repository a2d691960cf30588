// Softmax of one row over a chunk, in four steps so that neighbouring rows overlap: mask, maximum,
// exponentials, codes. Lane i of every sum is the definition's lane i.
#include "kernels/attention_tiles.inl"

namespace vericache::kernels {
namespace {

constexpr float kNegInf = -__builtin_inff();

// exp2_(t), see numerics.h.
[[gnu::always_inline]] inline Float Exp2Vec(Float t) {
  const Float bias = V::Set(kRoundBias);
  const Float z = V::Add(t, bias);
  const Float f = V::Sub(t, V::Sub(z, bias));
  Float p = V::Fma(V::Set(kExp2C5), f, V::Set(kExp2C4));
  p = V::Fma(p, f, V::Set(kExp2C3));
  p = V::Fma(p, f, V::Set(kExp2C2));
  p = V::Fma(p, f, V::Set(kExp2C1));
  p = V::Fma(p, f, V::Set(1.0f));
  return V::ScaleOrZero(p, z, t);
}

[[gnu::always_inline]] inline void MaskRow(float* scores, int n_visible, int n_slots) {
  for (int x = n_visible; x < n_slots; ++x) scores[x] = kNegInf;
}

// n_slots: a multiple of 64.
[[gnu::always_inline]] inline float MaxOfRow(const float* scores, int n_slots) {
  Float top[4];
#pragma GCC unroll 4
  for (int u = 0; u < 4; ++u) top[u] = V::Load(scores + u * kWidth);
  for (int x = 4 * kWidth; x < n_slots; x += 4 * kWidth) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) top[u] = V::Max(top[u], V::Load(scores + x + u * kWidth));
  }
  // Adding +0 makes a zero maximum +0, whichever zero came first.
  return V::MaxLane(V::Max(V::Max(top[0], top[1]), V::Max(top[2], top[3]))) + 0.0f;
}

// What the rows of a chunk share.
struct ChunkSlots {
  int n_slots;                            // multiple of 64
  const float* value_scales[kSubBlocks];  // by sub-block; 0 from the first slot no row sees
};

// scores <- exp2_(score - max) * value scale; sub_lanes: sums of these over each sub-block.
// Returns the sum of the exponentials.
[[gnu::always_inline]] inline float ExpRow(const ChunkSlots& slots, float max, float* scores,
                                           const float* next_scores, float (*sub_lanes)[kLanes]) {
  const Float row_max = V::Set(max);
  Float lanes[kLaneVecs];
  for (int g = 0; g < kLaneVecs; ++g) lanes[g] = V::Set(0.0f);
  for (int b = 0; b < slots.n_slots / kSubBlockSlots; ++b) {
    float* s = scores + b * kSubBlockSlots;
    const float* scales = slots.value_scales[b];
#pragma GCC unroll 2
    for (int g = 0; g < kLaneVecs; ++g) {
      Float e[4];
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) {
        if (g == 0) __builtin_prefetch(next_scores + b * kSubBlockSlots + u * 16, 1, 3);
        e[u] = Exp2Vec(V::Sub(V::Load(s + u * 16 + g * kWidth), row_max));
      }
      lanes[g] = V::Add(lanes[g], V::Add(V::Add(e[0], e[1]), V::Add(e[2], e[3])));
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) {
        e[u] = V::Mul(e[u], V::Load(scales + u * 16 + g * kWidth));
        V::Store(s + u * 16 + g * kWidth, e[u]);
      }
      V::Store(sub_lanes[b] + g * kWidth, V::Add(V::Add(e[0], e[1]), V::Add(e[2], e[3])));
    }
  }
  return V::TreeSumLanes(lanes);
}

// scales[b] = 16375 / X, back[b] = X / 16375; 0 where X is negligible.
[[gnu::always_inline]] inline void SubBlockScales(const float (*sub_lanes)[kLanes], float* scales,
                                                  float* back) {
  float x[kSubBlocks];
  V::MaxOfSubBlocks(sub_lanes, x);
  for (int b = 0; b < kSubBlocks; ++b) {
    scales[b] = x[b] >= kTinyStep ? kWeightCodeMax / x[b] : 0.0f;
    back[b] = x[b] >= kTinyStep ? x[b] * kWeightCodeInverse : 0.0f;
  }
}

// Codes of the weights of a row, as pairs (slot, slot + 16).
[[gnu::always_inline]] inline void EncodeWeights(const float* weights, int n_slots,
                                                 const float* scales, int32_t* words) {
  const Float bias = V::Set(kRoundBias);
  for (int b = 0; b < n_slots / kSubBlockSlots; ++b) {
    const Float scale = V::Set(scales[b]);
    const float* w = weights + b * kSubBlockSlots;
    int32_t* out = words + b * kSubBlockSlots / 2;
#pragma GCC unroll 2
    for (int pair = 0; pair < kSubBlockSlots; pair += 32) {
#pragma GCC unroll 2
      for (int g = 0; g < kLaneVecs; ++g) {
        V::StorePairs(out + pair / 2 + g * kWidth,
                      V::Fma(V::Load(w + pair + g * kWidth), scale, bias),
                      V::Fma(V::Load(w + pair + 16 + g * kWidth), scale, bias));
      }
    }
  }
}

}  // namespace
}  // namespace vericache::kernels
