// Integer dot tiles: rows x vectors of accumulators, fully unrolled, codes read as they are stored.
// V is the vector type of the instruction set.
//
// GCC 12 spills accumulators it cannot index at compile time, and moves prefetches out of place if
// they come in bursts: hence the unroll pragmas and one template per tile shape.

namespace vericache::kernels {
namespace {

using Float = V::Float;
using Int = V::Int;
constexpr int kWidth = V::kWidth;
constexpr int kLaneVecs = kLanes / kWidth;  // vectors that hold the 16 lanes of a sum

// Words of 32 bits that a row multiplies with: codes of q over dims, codes of P over slots.
constexpr int kQueryPitch = kMaxHeadDim / 2 + 16;
constexpr int kScorePitch = kChunkSlots + 16;  // not a power of two: rows fall into different sets
constexpr int kWeightPitch = kChunkSlots / 2 + 16;
constexpr int kSubBlocks = kChunkSlots / kSubBlockSlots;
constexpr int kBackPitch = 2 * kSubBlocks;

// How a tile prefetches: nothing, or what is read two tiles later, into L2 (a few rows: the stream
// from memory decides) or L1 (many rows).
enum Prefetch : int { kNone = 0, kToL2 = 2, kToL1 = 3 };

template <int kHint>
[[gnu::always_inline]] inline void PrefetchLine(const std::byte* p) {
  if constexpr (kHint != kNone) __builtin_prefetch(p, 0, kHint);
}

// ---- codes as stored -> pairs of 16-bit integers
// -------------------------------------------------

struct CodesI16 {
  static constexpr int kLaneBytes = 4;  // bytes of one lane's pair
  [[gnu::always_inline]] static Int Load(const std::byte* p) { return V::LoadInt(p); }
};

// ---- scores
// --------------------------------------------------------------------------------------

// Rows of queries against consecutive slots of one run.
struct KeyTile {
  const std::byte* keys;     // of the first slot
  size_t group_bytes;        // from one group of 16 slots to the next
  int n_steps;               // words per row
  const int32_t* words;      // [rows][kQueryPitch]
  const float* row_scales;   // [rows] dq
  const float* slot_scales;  // [slots]
  const float* log_weights;  // [slots]
  float* scores;             // [rows][kScorePitch]
  const std::byte* prefetch;
};

// acc[r][c] += dots of the tile's rows and slots.
template <class Codes, int kRows, int kVecs, int kHint>
[[gnu::always_inline]] inline void DotKeys(const KeyTile& tile, Int (&acc)[kRows][kVecs]) {
  constexpr int kStepBytes = kKeyGroup * Codes::kLaneBytes;
  constexpr int kPairBytes = 2 * kVecs * kWidth * Codes::kLaneBytes;
  const std::byte* keys = tile.keys;
  const size_t group_bytes = tile.group_bytes;
  const int32_t* words = tile.words;
  const std::byte* prefetch = tile.prefetch;
  const auto step = [&] [[gnu::always_inline]] (int i) {
    Int k[kVecs];
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      k[c] = Codes::Load(keys + static_cast<size_t>(c / kLaneVecs) * group_bytes +
                         c % kLaneVecs * kWidth * Codes::kLaneBytes + i * kStepBytes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Int word = V::SetInt(words[r * kQueryPitch + i]);
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c) V::DotPairs(acc[r][c], k[c], word);
    }
  };
  for (int i = 0; i < tile.n_steps; i += 2) {
    step(i);
#pragma GCC unroll 8
    for (int b = 0; b < kPairBytes; b += 64) PrefetchLine<kHint>(prefetch + b);
    prefetch += kPairBytes;
    step(i + 1);
  }
}

template <class Codes, int kRows, int kVecs, int kHint>
[[gnu::noinline]] void ScoreTile(const KeyTile& tile) {
  Int acc[kRows][kVecs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) acc[r][c] = V::SetInt(0);
  }
  DotKeys<Codes, kRows, kVecs, kHint>(tile, acc);
#pragma GCC unroll 8
  for (int c = 0; c < kVecs; ++c) {
    const Float slot_scale = V::Load(tile.slot_scales + c * kWidth);
    const Float bias = V::Load(tile.log_weights + c * kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Float scaled = V::Mul(V::ToFloat(acc[r][c]), slot_scale);
      V::Store(tile.scores + r * kScorePitch + c * kWidth,
               V::Fma(scaled, V::Set(tile.row_scales[r]), bias));
    }
  }
}

// ---- weighted values
// -----------------------------------------------------------------------------

// Rows of weights against the dims of one sub-block's values.
struct ValueTile {
  const std::byte* values;    // of the sub-block and the tile's first dim
  size_t step_bytes;          // from one pair of slots to the next
  const int32_t* words;       // [rows][kWeightPitch]
  const int32_t* next_words;  // of the tile that follows
  const float* back;          // [rows][kBackPitch] what a unit of the sums is worth
  float* out;                 // [rows][out_pitch]
  ptrdiff_t out_pitch;
  const std::byte* prefetch;
};

template <class Codes, int kRows, int kVecs, int kHint>
[[gnu::always_inline]] inline void DotValues(const ValueTile& tile, Int (&acc)[kRows][kVecs]) {
  constexpr int kVecBytes = kWidth * Codes::kLaneBytes;
  const std::byte* values = tile.values;
  const size_t step_bytes = tile.step_bytes;
  const int32_t* words = tile.words;
  const std::byte* prefetch = tile.prefetch;
#pragma GCC unroll 2
  for (int i = 0; i < kSubBlockSlots / 2; ++i) {
    Int v[kVecs];
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) v[c] = Codes::Load(values + c * kVecBytes);
#pragma GCC unroll 8
    for (int b = 0; b < kVecs * kVecBytes; b += 64) PrefetchLine<kHint>(prefetch + b);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Int word = V::SetInt(words[r * kWeightPitch + i]);
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c) V::DotPairs(acc[r][c], v[c], word);
    }
    values += step_bytes;
    prefetch += step_bytes;
  }
}

template <class Codes, int kRows, int kVecs, int kHint>
[[gnu::noinline]] void ValueSumTile(const ValueTile& tile) {
  Int acc[kRows][kVecs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) acc[r][c] = V::SetInt(0);
  }
  if constexpr (kHint != kToL2) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int w = 0; w < kSubBlockSlots / 2; w += 16) {
        __builtin_prefetch(tile.next_words + r * kWeightPitch + w, 0, kToL1);
      }
    }
  }
  DotValues<Codes, kRows, kVecs, kHint>(tile, acc);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const Float back = V::Set(tile.back[r * kBackPitch]);
    float* out = tile.out + r * tile.out_pitch;
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      V::Store(out + c * kWidth, V::Fma(V::ToFloat(acc[r][c]), back, V::Load(out + c * kWidth)));
    }
  }
}

// ---- tiles by number of rows
// ---------------------------------------------------------------------

template <class Tile, int kMaxRows>
struct TilesByRows {
  void (*of_rows[kMaxRows + 1])(const Tile&);
};

template <class Codes, int kVecs, int kHint, int... kRows>
constexpr TilesByRows<KeyTile, sizeof...(kRows)> ScoreTiles(std::integer_sequence<int, kRows...>) {
  return {{nullptr, ScoreTile<Codes, kRows + 1, kVecs, kHint>...}};
}
template <class Codes, int kVecs, int kHint, int... kRows>
constexpr TilesByRows<ValueTile, sizeof...(kRows)> ValueTiles(
    std::integer_sequence<int, kRows...>) {
  return {{nullptr, ValueSumTile<Codes, kRows + 1, kVecs, kHint>...}};
}

// Rows cut into tiles as even as possible.
struct RowTiles {
  int count;
  int n_rows;
  RowTiles(int rows, int max_rows) : count((rows + max_rows - 1) / max_rows), n_rows(rows) {}
  int Begin(int tile) const { return n_rows * tile / count; }
  int Size(int tile) const { return Begin(tile + 1) - Begin(tile); }
};

}  // namespace
}  // namespace vericache::kernels
