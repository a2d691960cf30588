// Everything that works on one row, over vectors of 16 lanes: included by exactly one file per
// instruction set, which defines Lanes first (on AVX2 a pair of registers). Lane i of a sum is the
// definition's lane i. [numerics 1, 3, 4]

namespace vericache::kernels {
namespace {

using V = Lanes;

// Calls body(offset, vector-or-partial) over n values: whole vectors first, then one padded with
// `0`.
template <class Body>
[[gnu::always_inline]] inline void ForLanes(int n, Body&& body) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, n - i);
}

[[gnu::always_inline]] inline V LoadSome(const float* p, int count) {
  return count == kLanes ? V::Load(p) : V::LoadPartial(p, count);
}
[[gnu::always_inline]] inline void StoreSome(float* p, int count, V x) {
  if (count == kLanes) {
    x.Store(p);
  } else {
    x.StorePartial(p, count);
  }
}

// exp2_(t), see numerics.h.
[[gnu::always_inline]] inline V Exp2Lanes(V t) {
  const V bias = V::Set(kRoundBias);
  const V z = V::Add(t, bias);
  const V f = V::Sub(t, V::Sub(z, bias));
  V p = V::Fma(V::Set(kExp2C5), f, V::Set(kExp2C4));
  p = V::Fma(p, f, V::Set(kExp2C3));
  p = V::Fma(p, f, V::Set(kExp2C2));
  p = V::Fma(p, f, V::Set(kExp2C1));
  p = V::Fma(p, f, V::Set(1.0f));
  return V::ScaleOrZero(p, z, t);
}

// ---- activations --------------------------------------------------------------------------------

// x is a whole block of 32.
[[gnu::always_inline]] inline void QuantizeBlock(const float* x, int8_t* codes, float* planes,
                                                 int n_rows) {
  const V low = V::Load(x);
  const V high = V::Load(x + kLanes);
  const uint32_t top = V::MaxAbsBits(low, high);
  const float amax = BitsFloat(top);
  float d = 0.0f;
  float r = 0.0f;
  if (top >= 0x7f800000u) {
    d = BitsFloat(0x7fc00000u);
  } else if (amax >= kActTiny) {
    d = amax / kActCodeMax;
    r = kActCodeMax / amax;
  }
  if (r == 0.0f) {
    __builtin_memset(codes, 0, kActBlock);
    StoreScales(planes, n_rows, d, 0, 0);
    return;
  }
  const V factor = V::Set(r);
  const int sum_low = V::Mul(low, factor).StoreInt8(codes);
  const int sum_high = V::Mul(high, factor).StoreInt8(codes + kLanes);
  StoreScales(planes, n_rows, d, sum_low, sum_high);
}

[[gnu::always_inline]] inline void QuantizeRows(Activations& acts, int block_begin, int block_end) {
  const int n_tiles = acts.TileCount();
  for (int tile_idx = 0; tile_idx < n_tiles; ++tile_idx) {
    const ActTile tile = TileOf(acts, tile_idx);
    for (int r = 0; r < tile.n_rows; ++r) {
      const float* row =
          acts.x + static_cast<size_t>(tile.first_row + r) * static_cast<size_t>(acts.k);
      for (int b = block_begin; b < block_end; ++b) {
        const float* x = row + b * kActBlock;
        const int n = acts.k - b * kActBlock;
        float padded[kActBlock] = {};
        if (n < kActBlock) {
          for (int i = 0; i < n; ++i) padded[i] = x[i];
          x = padded;
        }
        QuantizeBlock(x, tile.Codes(b, r), tile.Scales(b, r), tile.n_rows);
      }
    }
  }
}

// ---- norm, rotation, gate, residual -------------------------------------------------------------

// Missing lanes are 0, and fma(0, 0, lane) leaves a lane's bits alone.
[[gnu::always_inline]] inline float SumOfSquares(const float* x, int n) {
  V sum = V::Set(0.0f);
  ForLanes(n, [&](int i, int count) {
    const V v = LoadSome(x + i, count);
    sum = V::Fma(v, v, sum);
  });
  return sum.TreeSum();
}

[[gnu::always_inline]] inline void NormRow(const float* x, const float* weight, int n, float eps,
                                           float* y) {
  const float mean = SumOfSquares(x, n) / static_cast<float>(n);
  const V inv = V::Set(1.0f / __builtin_sqrtf(mean + eps));
  ForLanes(n, [&](int i, int count) {
    StoreSome(y + i, count,
              V::Mul(V::Mul(LoadSome(x + i, count), inv), LoadSome(weight + i, count)));
  });
}

[[gnu::always_inline]] inline void RotateHalves(float* head, const float* cos_sin, int n_pairs) {
  ForLanes(n_pairs, [&](int i, int count) {
    const V c = LoadSome(cos_sin + i, count);
    const V s = LoadSome(cos_sin + n_pairs + i, count);
    const V x0 = LoadSome(head + i, count);
    const V x1 = LoadSome(head + n_pairs + i, count);
    StoreSome(head + i, count, V::FmaSub(x0, c, V::Mul(x1, s)));
    StoreSome(head + n_pairs + i, count, V::Fma(x1, c, V::Mul(x0, s)));
  });
}

// 8 pairs a step: even lanes x0 * c - x1 * s, odd lanes x1 * c + x0 * s.
[[gnu::always_inline]] inline void RotateAdjacent(float* head, const float* cos_sin, int n_pairs) {
  constexpr int kPairs = kLanes / 2;
  float c[kPairs] = {};
  float s[kPairs] = {};
  for (int i = 0; i < n_pairs; i += kPairs) {
    const int count = n_pairs - i < kPairs ? n_pairs - i : kPairs;
    const float* cos = cos_sin + i;
    const float* sin = cos_sin + n_pairs + i;
    if (count < kPairs) {  // never read beyond the table
      for (int j = 0; j < count; ++j) {
        c[j] = cos[j];
        s[j] = sin[j];
      }
      cos = c;
      sin = s;
    }
    const V x = LoadSome(head + 2 * i, 2 * count);
    const V turned = V::FmaSubAdd(x, V::LoadTwice(cos), V::Mul(x.SwapPairs(), V::LoadTwice(sin)));
    StoreSome(head + 2 * i, 2 * count, turned);
  }
}

[[gnu::always_inline]] inline V Sigmoid(V x) {
  const V e = Exp2Lanes(V::Mul(x.NegatedAbs(), V::Set(kLog2E)));
  const V one = V::Set(1.0f);
  return V::Div(V::SelectNonNegative(x, one, e), V::Add(one, e));
}

[[gnu::always_inline]] inline void GateRow(const float* gate, const float* up, int n, float* y) {
  ForLanes(n, [&](int i, int count) {
    const V g = LoadSome(gate + i, count);
    StoreSome(y + i, count, V::Mul(V::Mul(g, Sigmoid(g)), LoadSome(up + i, count)));
  });
}

[[gnu::always_inline]] inline void AddRow(float* x, const float* y, int n) {
  ForLanes(n, [&](int i, int count) {
    StoreSome(x + i, count, V::Add(LoadSome(x + i, count), LoadSome(y + i, count)));
  });
}

// ---- codes of K, q and V ------------------------------------------------------------------------

// One head vector with every NaN and infinity replaced by 0.
struct HeadVector {
  V parts[kMaxHeadDim / kLanes];
  int n_parts;
};

[[gnu::always_inline]] inline HeadVector LoadFinite(const float* x, int head_dim, bool* is_finite) {
  HeadVector head;
  head.n_parts = head_dim / kLanes;
  bool all_finite = true;
  for (int i = 0; i < head.n_parts; ++i)
    head.parts[i] = V::Load(x + i * kLanes).FiniteOrZero(&all_finite);
  if (!all_finite) *is_finite = false;
  return head;
}

[[gnu::always_inline]] inline float MaxAbs(const HeadVector& head) {
  V top = V::Set(0.0f);
  for (int i = 0; i < head.n_parts; ++i) top = V::MaxAbs(top, head.parts[i]);
  return BitsFloat(V::MaxAbsBits(top, top));
}

[[gnu::always_inline]] inline float StoreCodes(const HeadVector& head, float step, int16_t* codes) {
  if (!(step > kTinyStep)) {
    __builtin_memset(codes, 0, sizeof(int16_t) * static_cast<size_t>(head.n_parts * kLanes));
    return 0.0f;
  }
  const V inverse = V::Set(1.0f / step);
  for (int i = 0; i < head.n_parts; ++i) {
    V::Fma(head.parts[i], inverse, V::Set(kRoundBias)).StoreLowWords(codes + i * kLanes);
  }
  return step;
}

[[gnu::always_inline]] inline float EncodeKeyRow(const float* x, int head_dim, int16_t* codes,
                                                 bool* is_finite) {
  const HeadVector head = LoadFinite(x, head_dim, is_finite);
  V sum = V::Set(0.0f);
  for (int i = 0; i < head.n_parts; ++i) sum = V::Fma(head.parts[i], head.parts[i], sum);
  const float by_norm = __builtin_sqrtf(sum.TreeSum()) * kKeyNormInverse;
  const float by_max = MaxAbs(head) * kKeyCodeInverse;
  float step = by_norm > by_max ? by_norm : by_max;
  if (!IsFinite(step)) {
    step = 0.0f;
    *is_finite = false;
  }
  return StoreCodes(head, step, codes);
}

[[gnu::always_inline]] inline float EncodeValueRow(const float* x, int head_dim, int16_t* codes,
                                                   bool* is_finite) {
  const HeadVector head = LoadFinite(x, head_dim, is_finite);
  return StoreCodes(head, MaxAbs(head) * kValueCodeInverse, codes);
}

}  // namespace
}  // namespace vericache::kernels
