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

// What the rows of a chunk share: scales and mids of values by sub-block, 0 from the first slot no
// row sees.
struct ChunkSlots {
  int n_slots;  // multiple of 64
  const float* value_scales[kSubBlocks];
  const float* value_mids[kSubBlocks];  // packed formats
};

// Sums over a row of exponentials.
struct RowSums {
  float weights;  // of exp2_(score - max)
  float mids;     // of exp2_(score - max) * mid of the value
};

// scores <- exp2_(score - max) * value scale. ranges: lanes whose maximum is X, by sub-block.
template <class Codes>
[[gnu::always_inline]] inline RowSums ExpRow(const ChunkSlots& slots, float max, float* scores,
                                             const float* next_scores, float (*ranges)[kLanes]) {
  const Float row_max = V::Set(max);
  Float weights[kLaneVecs];
  Float mids[kLaneVecs];
  for (int g = 0; g < kLaneVecs; ++g) weights[g] = mids[g] = V::Set(0.0f);
  for (int b = 0; b < slots.n_slots / kSubBlockSlots; ++b) {
    float* s = scores + b * kSubBlockSlots;
    const float* value_scales = slots.value_scales[b];
    const float* value_mids = slots.value_mids[b];
#pragma GCC unroll 2
    for (int g = 0; g < kLaneVecs; ++g) {
      Float e[4];
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) {
        if (g == 0) __builtin_prefetch(next_scores + b * kSubBlockSlots + u * 16, 1, 3);
        e[u] = Exp2Vec(V::Sub(V::Load(s + u * 16 + g * kWidth), row_max));
      }
      weights[g] = V::Add(weights[g], V::Add(V::Add(e[0], e[1]), V::Add(e[2], e[3])));
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) {
        if constexpr (Codes::kIsPacked) {
          mids[g] = V::Fma(e[u], V::Load(value_mids + u * 16 + g * kWidth), mids[g]);
        }
        e[u] = V::Mul(e[u], V::Load(value_scales + u * 16 + g * kWidth));
        V::Store(s + u * 16 + g * kWidth, e[u]);
      }
      V::Store(ranges[b] + g * kWidth, Codes::kIsPacked
                                           ? V::Max(V::Max(e[0], e[1]), V::Max(e[2], e[3]))
                                           : V::Add(V::Add(e[0], e[1]), V::Add(e[2], e[3])));
    }
  }
  return {V::TreeSumLanes(weights), Codes::kIsPacked ? V::TreeSumLanes(mids) : 0.0f};
}

// Largest code of P, and its reciprocal.
template <class Codes>
constexpr float kCodeMaxOf = !Codes::kIsPacked           ? kWeightCodeMax
                             : Codes::kTermsPerWord == 2 ? kWideCodeMax
                                                         : kByteWeightMax;
template <class Codes>
constexpr float kCodeInverseOf = !Codes::kIsPacked           ? kWeightCodeInverse
                                 : Codes::kTermsPerWord == 2 ? kWideCodeInverse
                                                             : kByteWeightInverse;

// scales[b] = largest code / X, back[b] = X / largest code; 0 where X is negligible.
template <class Codes>
[[gnu::always_inline]] inline void SubBlockScales(const float (*ranges)[kLanes], float* scales,
                                                  float* back) {
  float x[kSubBlocks];
  V::MaxOfSubBlocks(ranges, x);
  for (int b = 0; b < kSubBlocks; ++b) {
    scales[b] = x[b] >= kTinyStep ? kCodeMaxOf<Codes> / x[b] : 0.0f;
    back[b] = x[b] >= kTinyStep ? x[b] * kCodeInverseOf<Codes> : 0.0f;
  }
}

// Codes of the weights of a row, as pairs (slot, slot + 16) of 16 bits or in order as bytes, and
// what the sums over them start from.
template <class Codes>
[[gnu::always_inline]] inline void EncodeWeights(const float* weights, int n_slots,
                                                 const float* scales, int32_t* words,
                                                 WeightRow& row) {
  constexpr int kWordsOfSubBlock = kSubBlockSlots / Codes::kTermsPerWord;
  const Float bias = V::Set(kRoundBias);
  for (int b = 0; b < n_slots / kSubBlockSlots; ++b) {
    const Float scale = V::Set(scales[b]);
    const float* w = weights + b * kSubBlockSlots;
    int32_t* out = words + b * kWordsOfSubBlock;
    Float total[kLaneVecs];
    for (int g = 0; g < kLaneVecs; ++g) total[g] = V::Set(0.0f);
#pragma GCC unroll 2
    for (int pair = 0; pair < kSubBlockSlots; pair += 32) {
      Float codes[2][kLaneVecs];
#pragma GCC unroll 2
      for (int g = 0; g < kLaneVecs; ++g) {
        codes[0][g] = V::Fma(V::Load(w + pair + g * kWidth), scale, bias);
        codes[1][g] = V::Fma(V::Load(w + pair + 16 + g * kWidth), scale, bias);
        if constexpr (Codes::kTermsPerWord == 2) {
          V::StorePairs(out + pair / 2 + g * kWidth, codes[0][g], codes[1][g]);
        } else {
          total[g] = V::Add(total[g],
                            V::Add(V::Sub(codes[0][g], bias), V::Sub(codes[1][g], bias)));  // exact
        }
      }
      if constexpr (Codes::kTermsPerWord == 4) {
        V::StoreLowBytes(out + pair / 4, codes[0]);
        V::StoreLowBytes(out + pair / 4 + 4, codes[1]);
      }
    }
    row.start[b] = Codes::kTermsPerWord == 4
                       ? -CodeCenter(Codes::kFormat) * static_cast<int32_t>(V::TreeSumLanes(total))
                       : 0;
  }
}

}  // namespace
}  // namespace vericache::kernels
