// Integer dot tiles: rows x vectors of accumulators, fully unrolled, codes read as they are stored.
// V is the vector type of the instruction set.
//
// GCC 12 spills accumulators it cannot index at compile time, and moves prefetches out of place if
// they come in bursts: hence the unroll pragmas and one template per tile shape.
#pragma once

namespace vericache::kernels {
namespace {

using Float = V::Float;
using Int = V::Int;
constexpr int kWidth = V::kWidth;
constexpr int kLaneVecs = kLanes / kWidth;  // vectors that hold the 16 lanes of a sum

// Words of 32 bits that a row multiplies with: codes of q over dims, codes of P over slots. The
// pitches are not powers of two, so that rows fall into different sets of the cache.
constexpr int kQueryPitch = kMaxHeadDim / 2 + 16;
constexpr int kScorePitch = kChunkSlots + 16;
constexpr int kWeightPitch = kChunkSlots / 2 + 16;
constexpr int kSubBlocks = kChunkSlots / kSubBlockSlots;

// How a tile prefetches: nothing, or what is read two tiles later, into L2 (a few rows: the stream
// from memory decides) or L1 (many rows).
enum Prefetch : int { kNone = 0, kToL2 = 2, kToL1 = 3 };

template <int kHint>
[[gnu::always_inline]] inline void PrefetchLine(const std::byte* p) {
  if constexpr (kHint != kNone) __builtin_prefetch(p, 0, kHint);
}

template <class Body, int... kIndex>
[[gnu::always_inline]] inline void EachOf(Body&& body, std::integer_sequence<int, kIndex...>) {
  (body(std::integral_constant<int, kIndex>{}), ...);
}
// body(0), ..., body(kCount - 1), the index known at compile time.
template <int kCount, class Body>
[[gnu::always_inline]] inline void Each(Body&& body) {
  EachOf(body, std::make_integer_sequence<int, kCount>());
}

// ---- codes as stored, and what multiplies them --------------------------------------------------
// A step reads one vector of codes; each of its lanes meets kWords words of every row.

// 16-bit codes in pairs, as they are (I16) or widened from bytes (Q8).
template <KvFormat kOf>
struct PairCodes {
  static constexpr KvFormat kFormat = kOf;
  static constexpr bool kIsPacked = kOf != KvFormat::kI16;
  static constexpr int kLaneBytes = kIsPacked ? 2 : 4;  // what a lane reads in a step
  static constexpr int kWords = 1;
  static constexpr int kTermsPerWord = 2;
  static constexpr int kManyHint = kIsPacked ? kToL2 : kToL1;
  static constexpr int kKeyRows = V::kKeyRows;
  static constexpr int kWideKeyRows = V::kWideKeyRows;
  static constexpr int kValueRows = V::kValueRows;
  static constexpr bool kIsDeferred = false;

  [[gnu::always_inline]] static Int Load(const std::byte* p) {
    return kIsPacked ? V::LoadBytesAsPairs(p) : V::LoadInt(p);
  }
  template <int kPlane>
  [[gnu::always_inline]] static Int Plane(Int codes) {
    return codes;
  }
  [[gnu::always_inline]] static void DotKey(Int& sum, Int codes, Int word) {
    V::DotPairs(sum, codes, word);
  }
  [[gnu::always_inline]] static void DotValue(Int& sum, Int codes, Int word) {
    V::DotPairs(sum, codes, word);
  }
};

// Unsigned codes of 4 or 2 bits, unpacked to bytes by planes.
// Without VNNI their dots gather in 16 bits, for as many steps as these hold: a pair of products is
// at most 2 * code * 127 for keys and 2 * code * 255 for values.
template <KvFormat kOf>
struct ByteCodes {
  static constexpr KvFormat kFormat = kOf;
  static constexpr bool kIsPacked = true;
  static constexpr int kLaneBytes = 4;
  static constexpr int kWords = 8 / CodeBits(kOf);
  static constexpr int kTermsPerWord = 4;
  static constexpr int kManyHint = kToL2;
  static constexpr int kKeyRows = V::kByteKeyRows;
  static constexpr int kWideKeyRows = V::kWideByteKeyRows;
  static constexpr int kValueRows = V::kByteValueRows;
  static constexpr bool kIsDeferred = V::kDefersBytes;
  static constexpr int kCodeMax = (1 << CodeBits(kOf)) - 1;
  static constexpr int kKeySteps = 32767 / (2 * kCodeMax * 127 * kWords);
  static constexpr int kValueSteps = 32767 / (2 * kCodeMax * 255 * kWords);

  [[gnu::always_inline]] static Int Load(const std::byte* p) { return V::LoadInt(p); }
  template <int kPlane>
  [[gnu::always_inline]] static Int Plane(Int codes) {
    return V::template MaskBytes<kPlane * CodeBits(kOf), kCodeMax>(codes);
  }
  [[gnu::always_inline]] static void DotKey(Int& sum, Int codes, Int word) {
    V::DotBytes(sum, codes, word);
  }
  [[gnu::always_inline]] static void DotValue(Int& sum, Int codes, Int word) {
    V::DotBytes(sum, word, codes);  // here the words are unsigned
  }
};

// sums += step(0) + ... + step(n_steps - 1), where step(i, sums) adds the products of one step.
// Not unrolled: between two copies of a step GCC 12 stores all the sums.
template <class Codes, int kStepsPerPart, int kRows, int kVecs, class Step>
[[gnu::always_inline]] inline void SumSteps(Int (&sums)[kRows][kVecs], int n_steps, Step&& step) {
  if constexpr (!Codes::kIsDeferred) {
    for (int i = 0; i < n_steps; ++i) step(i, sums);
  } else {
    for (int i = 0; i < n_steps;) {
      Int part[kRows][kVecs];
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
        for (int c = 0; c < kVecs; ++c) part[r][c] = V::SetInt(0);
      }
      const int end = i + kStepsPerPart < n_steps ? i + kStepsPerPart : n_steps;
      for (; i < end; ++i) step(i, part);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
        for (int c = 0; c < kVecs; ++c) sums[r][c] = V::Widen(sums[r][c], part[r][c]);
      }
    }
  }
}

template <int kRows, int kVecs>
[[gnu::always_inline]] inline void StartSums(const int32_t* starts, int pitch,
                                             Int (&sums)[kRows][kVecs]) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const Int start = V::SetInt(starts != nullptr ? starts[r * pitch] : 0);
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) sums[r][c] = start;
  }
}

// ---- scores -------------------------------------------------------------------------------------

// What a row brings to the scores of a group of 64 slots (I16: of all slots).
struct QueryRow {
  float scale;    // dq, or the step of the folded query
  float mid;      // packed: the part of the score that is the same for all slots
  int32_t start;  // bytes: takes the center off every code
};

// Rows of queries against consecutive slots of one run.
struct KeyTile {
  const std::byte* keys;     // of the first slot
  size_t group_bytes;        // from one group of 16 slots to the next
  int n_steps;               // steps of a row
  const int32_t* words;      // [rows][kQueryPitch]
  const QueryRow* rows;      // [rows]
  const float* slot_scales;  // [slots], I16
  const float* log_weights;  // [slots]
  float* scores;             // [rows][kScorePitch]
  const std::byte* prefetch;
};

template <class Codes, int kRows, int kVecs, int kHint>
[[gnu::always_inline]] inline void DotKeys(const KeyTile& tile, Int (&sums)[kRows][kVecs]) {
  constexpr int kVecBytes = kWidth * Codes::kLaneBytes;
  constexpr int kKeySteps = [] {
    if constexpr (Codes::kIsDeferred) return Codes::kKeySteps;
    return 0;
  }();
  const std::byte* keys = tile.keys;
  const size_t group_bytes = tile.group_bytes;
  const int32_t* words = tile.words;
  const std::byte* prefetch = tile.prefetch;
  SumSteps<Codes, kKeySteps>(sums, tile.n_steps, [&] [[gnu::always_inline]] (int i, auto& into) {
    Int codes[kVecs];
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      codes[c] = Codes::Load(keys + static_cast<size_t>(c / kLaneVecs) * group_bytes +
                             (i * kLaneVecs + c % kLaneVecs) * kVecBytes);
    }
#pragma GCC unroll 8
    for (int b = 0; b < kVecs * kVecBytes; b += 64) {
      PrefetchLine<kHint>(prefetch + i * (kVecs * kVecBytes) + b);
    }
    Each<Codes::kWords>([&] [[gnu::always_inline]] (auto index) {
      constexpr int kPlane = decltype(index)::value;
      Int k[kVecs];
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c) k[c] = Codes::template Plane<kPlane>(codes[c]);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Int word = V::SetInt(words[r * kQueryPitch + i * Codes::kWords + kPlane]);
#pragma GCC unroll 8
        for (int c = 0; c < kVecs; ++c) Codes::DotKey(into[r][c], k[c], word);
      }
    });
  });
}

template <class Codes, int kRows, int kVecs, int kHint>
[[gnu::noinline]] void ScoreTile(const KeyTile& tile) {
  Int sums[kRows][kVecs];
  StartSums(Codes::kIsPacked ? &tile.rows->start : nullptr, sizeof(QueryRow) / sizeof(int32_t),
            sums);
  DotKeys<Codes, kRows, kVecs, kHint>(tile, sums);
#pragma GCC unroll 8
  for (int c = 0; c < kVecs; ++c) {
    const Float bias = V::Load(tile.log_weights + c * kWidth);
    const Float slot_scale = Codes::kIsPacked ? bias : V::Load(tile.slot_scales + c * kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Float sum = V::ToFloat(sums[r][c]);
      const Float scale = V::Set(tile.rows[r].scale);
      V::Store(tile.scores + r * kScorePitch + c * kWidth,
               Codes::kIsPacked ? V::Fma(sum, scale, V::Add(V::Set(tile.rows[r].mid), bias))
                                : V::Fma(V::Mul(sum, slot_scale), scale, bias));
    }
  }
}

// ---- weighted values ----------------------------------------------------------------------------

// What a row's codes of P are worth, by sub-block.
struct WeightRow {
  float back[kSubBlocks];     // a unit of the sums
  int32_t start[kSubBlocks];  // bytes: takes the center off every code
};

// Rows of weights against the dims of one sub-block's values.
struct ValueTile {
  const std::byte* values;  // of the sub-block and the tile's first dim
  size_t step_bytes;
  const int32_t* words;       // [rows][kWeightPitch]
  const int32_t* next_words;  // of the tile that follows
  const WeightRow* rows;      // [rows]
  int sub_block;
  float* out;  // [rows][out_pitch]
  ptrdiff_t out_pitch;
  const std::byte* prefetch;
};

template <class Codes, int kRows, int kVecs, int kHint>
[[gnu::always_inline]] inline void DotValues(const ValueTile& tile, Int (&sums)[kRows][kVecs]) {
  constexpr int kVecBytes = kWidth * Codes::kLaneBytes;
  constexpr int kSteps = kSubBlockSlots / (Codes::kWords * Codes::kTermsPerWord);
  constexpr int kValueSteps = [] {
    if constexpr (Codes::kIsDeferred) return Codes::kValueSteps;
    return 0;
  }();
  const std::byte* values = tile.values;
  const ptrdiff_t step_bytes = static_cast<ptrdiff_t>(tile.step_bytes);
  const int32_t* words = tile.words;
  const std::byte* prefetch = tile.prefetch;
  SumSteps<Codes, kValueSteps>(sums, kSteps, [&] [[gnu::always_inline]] (int i, auto& into) {
    Int codes[kVecs];
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) codes[c] = Codes::Load(values + c * kVecBytes);
#pragma GCC unroll 8
    for (int b = 0; b < kVecs * kVecBytes; b += 64) PrefetchLine<kHint>(prefetch + b);
    Each<Codes::kWords>([&] [[gnu::always_inline]] (auto index) {
      constexpr int kPlane = decltype(index)::value;
      Int v[kVecs];
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c) v[c] = Codes::template Plane<kPlane>(codes[c]);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Int word = V::SetInt(words[r * kWeightPitch + i * Codes::kWords + kPlane]);
#pragma GCC unroll 8
        for (int c = 0; c < kVecs; ++c) Codes::DotValue(into[r][c], v[c], word);
      }
    });
    values += step_bytes;
    prefetch += step_bytes;
  });
}

template <class Codes, int kRows, int kVecs, int kHint>
[[gnu::noinline]] void ValueSumTile(const ValueTile& tile) {
  Int sums[kRows][kVecs];
  StartSums(Codes::kIsPacked ? &tile.rows->start[tile.sub_block] : nullptr,
            sizeof(WeightRow) / sizeof(int32_t), sums);
  if constexpr (kHint != kToL2) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int w = 0; w < kSubBlockSlots / Codes::kTermsPerWord; w += 16) {
        __builtin_prefetch(tile.next_words + r * kWeightPitch + w, 0, kToL1);
      }
    }
  }
  DotValues<Codes, kRows, kVecs, kHint>(tile, sums);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const Float back = V::Set(tile.rows[r].back[tile.sub_block]);
    float* out = tile.out + r * tile.out_pitch;
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      V::Store(out + c * kWidth, V::Fma(V::ToFloat(sums[r][c]), back, V::Load(out + c * kWidth)));
    }
  }
}

// ---- tiles by number of rows --------------------------------------------------------------------

template <class Tile, int kMinRows, int kCount>
struct TilesByRows {
  void (*tiles[kCount])(const Tile&);
  void Run(int n_rows, const Tile& tile) const { tiles[n_rows - kMinRows](tile); }
};

// Tiles of kMinRows, kMinRows + 1, ... rows.
template <class Codes, int kVecs, int kHint, int kMinRows, int... kMore>
constexpr TilesByRows<KeyTile, kMinRows, sizeof...(kMore)> ScoreTiles(
    std::integer_sequence<int, kMore...>) {
  return {{ScoreTile<Codes, kMinRows + kMore, kVecs, kHint>...}};
}
template <class Codes, int kVecs, int kHint, int kMinRows, int... kMore>
constexpr TilesByRows<ValueTile, kMinRows, sizeof...(kMore)> ValueTiles(
    std::integer_sequence<int, kMore...>) {
  return {{ValueSumTile<Codes, kMinRows + kMore, kVecs, kHint>...}};
}

// Rows cut into tiles as even as possible; the last is a largest one.
struct RowTiles {
  int count;
  int n_rows;
  RowTiles(int rows, int max_rows) : count((rows + max_rows - 1) / max_rows), n_rows(rows) {}
  int Begin(int tile) const { return n_rows * tile / count; }
  int Size(int tile) const { return Begin(tile + 1) - Begin(tile); }
  int Largest() const { return Size(count - 1); }
};

}  // namespace
}  // namespace vericache::kernels
