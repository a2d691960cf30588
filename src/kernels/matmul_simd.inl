// The matmul over vectors of V::kWidth columns: included by exactly one file per instruction set,
// which defines V first.
//
// One lane owns one output column. A block of 32 inputs is decoded once per tile of rows into
// unsigned codes; each row then makes one exact integer dot per lane and the float steps of the
// definition, in its order. [numerics 2]
//
// V offers: kWidth, kParts = 16 / kWidth, I and F (integer and float vectors), the loads and
// arithmetic used below, and the integer dot: either kHasByteDot with ByteDot (vpdpbusd), or
// MaddBytes (vpmaddubsw), whose int16 pairs this file keeps in range.

namespace vericache::kernels {
namespace {

// f(0), f(1), ... with compile-time indices: GCC spills register arrays that are indexed by a loop
// variable.
template <int kCount, class F>
[[gnu::always_inline]] inline void Each(F&& f) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, kIndex>{}), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

constexpr size_t kPrefetchAhead = 2048;  // bytes: +29 % on weights that are not in cache

// The columns of one part of one block.
template <class V>
struct DecodedBlock {
  typename V::I codes[8];  // group g: 4 inputs per lane, unsigned
  typename V::I upper[8];  // high nibbles of 8-bit codes for vpmaddubsw; codes has the low ones
  typename V::F scale[2];
  typename V::F min;  // see kMinIsSubtracted
};

// K super-blocks store the minimum as a positive number to be subtracted.
template <WeightType kType>
constexpr bool kMinIsSubtracted = IsSuper(kType);

// ---- decoding -----------------------------------------------------------------------------------

// Groups [kFirst, kFirst + kCount) of 8-bit codes. `lines` points at this part of the block's first
// line, here and below.
template <class V, int kFirst, int kCount>
[[gnu::always_inline]] inline void DecodeBytes(const std::byte* lines, DecodedBlock<V>& out) {
  Each<kCount>([&](auto i) {
    const auto line = V::LoadLine(lines + (kFirst + i) * kLineBytes);
    if constexpr (V::kHasByteDot) {
      out.codes[kFirst + i] = line;
    } else {
      out.codes[kFirst + i] = V::And(line, V::Bytes(0x0f));
      out.upper[kFirst + i] = V::And(V::template ShiftRight<4>(line), V::Bytes(0x0f));
    }
  });
}

template <class V, WeightType kType>
[[gnu::always_inline]] inline void DecodeCodes(const std::byte* lines, DecodedBlock<V>& out) {
  constexpr int kBits = LayoutOf(kType).code_bits;
  if constexpr (kBits == 8) {
    DecodeBytes<V, 0, 8>(lines, out);
  } else {
    const auto low = V::Bytes(0x0f);
    Each<4>([&](auto p) {
      const auto line = V::LoadLine(lines + p * kLineBytes);
      out.codes[p] = V::And(line, low);
      out.codes[p + 4] = V::And(V::template ShiftRight<4>(line), low);
    });
  }
  if constexpr (kBits == 5) {  // bit g of the fifth line becomes bit 4 of group g
    const auto line = V::LoadLine(lines + 4 * kLineBytes);
    const auto bit = V::Bytes(0x10);
    Each<8>([&](auto g) {
      out.codes[g] = V::OrMasked(out.codes[g], V::template ShiftLeft<4 - g>(line), bit);
    });
  }
  if constexpr (kBits == 6) {  // bits 2i, 2i + 1 of line h become bits 4, 5 of group 4h + i
    const auto pair = V::Bytes(0x30);
    Each<2>([&](auto h) {
      const auto line = V::LoadLine(lines + (4 + h) * kLineBytes);
      Each<4>([&](auto i) {
        out.codes[4 * h + i] =
            V::OrMasked(out.codes[4 * h + i], V::template ShiftLeft<4 - 2 * i>(line), pair);
      });
    });
  }
}

// `panel` is the panel's start; `column` the first column of the part.
template <class V, WeightType kType>
[[gnu::always_inline]] inline void DecodeScales(const std::byte* panel, int block, int column,
                                                DecodedBlock<V>& out) {
  constexpr PackedLayout kLayout = LayoutOf(kType);
  const std::byte* scales =
      panel + (IsSuper(kType) ? SuperOffset(kType, block) : ScaleOffset(kType, block));
  const std::byte* sub = scales + kSuperSubScales + column;
  const int j = block % kSuperBlocks;
  const auto d = V::LoadF16(scales + 2 * column);
  if constexpr (kLayout.has_halves) {
    Each<2>(
        [&](auto h) { out.scale[h] = V::Mul(d, V::LoadI8(sub + (2 * j + h) * kPanelColumns)); });
  } else if constexpr (IsSuper(kType)) {
    out.scale[0] = V::Mul(d, V::LoadU8(sub + j * kPanelColumns));
    out.min = V::Mul(V::LoadF16(scales + kPlaneBytes + 2 * column),
                     V::LoadU8(sub + (kSuperBlocks + j) * kPanelColumns));
  } else {
    out.scale[0] = d;
    if constexpr (kLayout.has_min) out.min = V::LoadF16(scales + kPlaneBytes + 2 * column);
  }
}

// ---- one row of one block -----------------------------------------------------------------------

// Sum of groups [kFirst, kFirst + kCount) in int16 pairs. Requires: it fits, see kMaxPairs.
template <class V, int kFirst, int kCount>
[[gnu::always_inline]] inline typename V::I PairSum(const typename V::I (&codes)[8],
                                                    const int8_t* q) {
  auto sum = V::MaddBytes(codes[kFirst], V::Broadcast4(q + 4 * kFirst));
  Each<kCount - 1>([&](auto i) {
    sum =
        V::Add16(sum, V::MaddBytes(codes[kFirst + i + 1], V::Broadcast4(q + 4 * (kFirst + i + 1))));
  });
  return sum;
}

// vpmaddubsw sums whose total fits int16: 8 of nibbles (30480), 4 of 5 bits (31496), 2 of 6
// (32004).
template <int kBits>
constexpr int kMaxPairs = 32767 / (2 * ((1 << kBits) - 1) * 127);

// start + exact dot of groups [kFirst, kFirst + kCount).
template <class V, int kBits, int kFirst, int kCount>
[[gnu::always_inline]] inline typename V::I Dot(const DecodedBlock<V>& block, const int8_t* q,
                                                typename V::I start) {
  if constexpr (V::kHasByteDot) {
    Each<kCount>([&](auto i) { V::ByteDot(start, block.codes[kFirst + i], q + 4 * (kFirst + i)); });
    return start;
  } else if constexpr (kBits == 8) {
    const auto low = V::MaddWords(PairSum<V, kFirst, kCount>(block.codes, q), V::Words(1));
    const auto high = V::MaddWords(PairSum<V, kFirst, kCount>(block.upper, q), V::Words(16));
    return V::Add32(V::Add32(low, start), high);
  } else {
    constexpr int kStep = kMaxPairs<kBits> < kCount ? kMaxPairs<kBits> : kCount;
    Each<kCount / kStep>([&](auto i) {
      start = V::Add32(
          start, V::MaddWords(PairSum<V, kFirst + i * kStep, kStep>(block.codes, q), V::Words(1)));
    });
    return start;
  }
}

template <WeightType kType>
constexpr int kStartPlane = kType == WeightType::kQ8_0   ? kPlaneStart128
                            : kType == WeightType::kQ5_0 ? kPlaneStart16
                            : kType == WeightType::kQ4_0 ? kPlaneStart8
                                                         : kPlaneStart32Low;

// Start value of the dot of half h. `planes` points at the row's plane 0.
template <class V, WeightType kType>
[[gnu::always_inline]] inline typename V::I Start(const float* planes, int n_rows, int h = 0) {
  if constexpr (LayoutOf(kType).code_offset == 0) return V::Zero();
  return V::BroadcastInt(planes + (kStartPlane<kType> + h) * n_rows);
}

// acc after the float steps of a block without halves.
template <class V, WeightType kType>
[[gnu::always_inline]] inline typename V::F FloatSteps(const DecodedBlock<V>& block,
                                                       typename V::I dot, const float* planes,
                                                       int n_rows, typename V::F acc) {
  const auto d = V::Broadcast(planes + kPlaneStep * n_rows);
  acc = V::Fma(V::ToFloat(dot), V::Mul(block.scale[0], d), acc);
  if constexpr (LayoutOf(kType).has_min) {
    const auto s = V::Broadcast(planes + kPlaneSum * n_rows);
    acc = kMinIsSubtracted<kType> ? V::FmaNegated(block.min, s, acc) : V::Fma(block.min, s, acc);
  }
  return acc;
}

// acc after the block.
template <class V, WeightType kType>
[[gnu::always_inline]] inline typename V::F RowStep(const DecodedBlock<V>& block, const int8_t* q,
                                                    const float* planes, int n_rows,
                                                    typename V::F acc) {
  constexpr int kBits = LayoutOf(kType).code_bits;
  if constexpr (LayoutOf(kType).has_halves) {
    const auto d = V::Broadcast(planes + kPlaneStep * n_rows);
    Each<2>([&](auto h) {
      const auto dot = Dot<V, kBits, 4 * h, 4>(block, q, Start<V, kType>(planes, n_rows, h));
      acc = V::Fma(V::ToFloat(dot), V::Mul(block.scale[h], d), acc);
    });
    return acc;
  } else {
    const auto dot = Dot<V, kBits, 0, 8>(block, q, Start<V, kType>(planes, n_rows));
    return FloatSteps<V, kType>(block, dot, planes, n_rows, acc);
  }
}

// ---- tiles of quantised weights -----------------------------------------------------------------

// What one part of one block works on: the rows of a tile, and the part's columns in the
// accumulators of its first row; rows are 16 floats apart.
struct BlockRows {
  const int8_t* codes;
  const float* planes;
  int n_rows;
  float* acc;
};

template <class V, WeightType kType>
[[gnu::always_inline]] inline void AccumulateBlock(const std::byte* lines, BlockRows rows,
                                                   DecodedBlock<V>& block) {
  DecodeCodes<V, kType>(lines, block);
  for (int r = 0; r < rows.n_rows; ++r) {
    float* acc = rows.acc + r * kPanelColumns;
    V::Store(acc, RowStep<V, kType>(block, rows.codes + r * kActBlock, rows.planes + r, rows.n_rows,
                                    V::Load(acc)));
  }
}

// The same for 8-bit codes where their 16 vectors of nibbles do not fit the registers: the dots of
// the first half of the block wait in memory.
template <class V, WeightType kType>
[[gnu::always_inline]] inline void AccumulateBlockInHalves(const std::byte* lines, BlockRows rows,
                                                           DecodedBlock<V>& block) {
  typename V::I dots[kMaxTileRows];
  DecodeBytes<V, 0, 4>(lines, block);
  for (int r = 0; r < rows.n_rows; ++r) {
    const auto start = Start<V, kType>(rows.planes + r, rows.n_rows);
    dots[r] = Dot<V, 8, 0, 4>(block, rows.codes + r * kActBlock, start);
  }
  DecodeBytes<V, 4, 4>(lines, block);
  for (int r = 0; r < rows.n_rows; ++r) {
    const auto dot = Dot<V, 8, 4, 4>(block, rows.codes + r * kActBlock, dots[r]);
    float* acc = rows.acc + r * kPanelColumns;
    V::Store(acc, FloatSteps<V, kType>(block, dot, rows.planes + r, rows.n_rows, V::Load(acc)));
  }
}

// Modifies: acc [tile rows][16].
template <class V, WeightType kType>
void AccumulateTile(const PackedMatrix& w, const std::byte* panel, const ActTile& tile,
                    float* acc) {
  constexpr bool kInHalves = LayoutOf(kType).code_bits == 8 && !V::kHasByteDot && V::kWidth < 16;
  const int n_blocks = w.k / kActBlock;
  for (int b = 0; b < n_blocks; ++b) {
    const std::byte* lines = panel + CodeOffset(kType, w.quant_offset, b);
    for (size_t at = 0; at < CodeBytes(kType); at += kLineBytes) {
      V::Prefetch(lines + kPrefetchAhead + at);
    }
    Each<V::kParts>([&](auto part) {
      DecodedBlock<V> block;
      DecodeScales<V, kType>(panel, b, part * V::kWidth, block);
      const BlockRows rows = {tile.Codes(b, 0), tile.Scales(b, 0), tile.n_rows,
                              acc + part * V::kWidth};
      const std::byte* part_lines = lines + part * 4 * V::kWidth;
      if constexpr (kInHalves) {
        AccumulateBlockInHalves<V, kType>(part_lines, rows, block);
      } else {
        AccumulateBlock<V, kType>(part_lines, rows, block);
      }
    });
  }
}

// Copies the first n_columns of a row of 16.
template <class V>
[[gnu::always_inline]] inline void StoreColumns(const float* from, int n_columns, float* to) {
  if (n_columns >= kPanelColumns) {
    Each<V::kParts>([&](auto part) {
      V::StoreUnaligned(to + part * V::kWidth, V::Load(from + part * V::kWidth));
    });
  } else {
    for (int i = 0; i < n_columns; ++i) to[i] = from[i];
  }
}

// Where results go: y points at the first column of panel_begin in row 0.
struct Output {
  float* y;
  size_t y_stride;
  int panel_begin;
  int panel_end;

  [[gnu::always_inline]] float* At(int row, int panel) const {
    return y + static_cast<size_t>(row) * y_stride +
           static_cast<size_t>(panel - panel_begin) * kPanelColumns;
  }
};

template <class V, WeightType kType>
void MultiplyQuantized(const PackedMatrix& w, const Activations& acts, const Output& out) {
  alignas(64) float acc[kMaxTileRows * kPanelColumns];
  for (int p = out.panel_begin; p < out.panel_end; ++p) {
    const int n_columns = w.n - p * kPanelColumns;
    for (int t = 0; t < acts.TileCount(); ++t) {
      const ActTile tile = TileOf(acts, t);
      for (int i = 0; i < tile.n_rows * kPanelColumns; i += V::kWidth)
        V::Store(acc + i, V::ZeroFloat());
      AccumulateTile<V, kType>(w, w.Panel(p), tile, acc);
      for (int r = 0; r < tile.n_rows; ++r) {
        StoreColumns<V>(acc + r * kPanelColumns, n_columns, out.At(tile.first_row + r, p));
      }
    }
  }
}

// ---- float weights ------------------------------------------------------------------------------

template <class V, WeightType kType>
[[gnu::always_inline]] inline typename V::F LoadWeights(const std::byte* p) {
  if constexpr (kType == WeightType::kF32) return V::Load(reinterpret_cast<const float*>(p));
  if constexpr (kType == WeightType::kF16) return V::LoadF16(p);
  if constexpr (kType == WeightType::kBf16) return V::LoadBf16(p);
}

// kRows rows from first_row times kPanels panels from `panel`, inputs in order; enough chains to
// hide the latency of fma.
template <class V, WeightType kType, int kRows, int kPanels>
void FloatTile(const PackedMatrix& w, const float* x, int first_row, int panel, const Output& out) {
  constexpr size_t kItem = static_cast<size_t>(LayoutOf(kType).gguf_block_bytes);
  constexpr size_t kStep = kItem * kPanelColumns;
  constexpr int kVectors = kPanels * V::kParts;
  const size_t k = static_cast<size_t>(w.k);
  const std::byte* panels = w.Panel(panel);
  const size_t panel_bytes = w.panel_bytes;
  const float* row = x + static_cast<size_t>(first_row) * k;

  typename V::F acc[kRows][kVectors];
  Each<kRows>([&](auto r) { Each<kVectors>([&](auto v) { acc[r][v] = V::ZeroFloat(); }); });
  for (size_t i = 0; i < k; ++i) {
    const std::byte* line = panels + i * kStep;
    typename V::F weights[kVectors];
    Each<kPanels>([&](auto c) {
      V::Prefetch(line + c * panel_bytes + kPrefetchAhead);
      Each<V::kParts>([&](auto part) {
        weights[c * V::kParts + part] =
            LoadWeights<V, kType>(line + c * panel_bytes + part * V::kWidth * kItem);
      });
    });
    Each<kRows>([&](auto r) {
      const auto value = V::Broadcast(row + r * k + i);
      Each<kVectors>([&](auto v) { acc[r][v] = V::Fma(weights[v], value, acc[r][v]); });
    });
  }
  Each<kRows>([&](auto r) {
    alignas(64) float columns[kVectors * V::kWidth];
    Each<kVectors>([&](auto v) { V::Store(columns + v * V::kWidth, acc[r][v]); });
    Each<kPanels>([&](auto c) {
      StoreColumns<V>(columns + c * kPanelColumns, w.n - (panel + c) * kPanelColumns,
                      out.At(first_row + r, panel + c));
    });
  });
}

using FloatTileFn = void (*)(const PackedMatrix&, const float*, int, int, const Output&);

// Panels that a tile of n rows takes at once.
template <class V>
constexpr int FloatPanels(int n_rows) {
  const int panels = V::kFloatChains / (n_rows * V::kParts);
  return panels < 1 ? 1 : panels > 4 ? 4 : panels;
}

template <class V, WeightType kType>
void MultiplyFloat(const PackedMatrix& w, const Activations& acts, const Output& out) {
  constexpr int kMaxRows = V::kFloatRows;
  static constexpr auto kTiles = []<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    struct Table {
      FloatTileFn wide[kMaxRows];
      FloatTileFn single[kMaxRows];
    };
    return Table{{FloatTile<V, kType, kIndex + 1, FloatPanels<V>(kIndex + 1)>...},
                 {FloatTile<V, kType, kIndex + 1, 1>...}};
  }
  (std::make_integer_sequence<int, kMaxRows>{});

  const int n_parts = (acts.n_rows + kMaxRows - 1) / kMaxRows;
  const int width = FloatPanels<V>((acts.n_rows + n_parts - 1) / n_parts);  // of the largest part
  int p = out.panel_begin;
  while (p < out.panel_end) {
    const int n_panels = p + width <= out.panel_end ? width : 1;
    for (int part = 0; part < n_parts; ++part) {
      const int begin = acts.n_rows * part / n_parts;
      const int n_rows = acts.n_rows * (part + 1) / n_parts - begin;
      const bool is_wide = n_panels > 1 && FloatPanels<V>(n_rows) == n_panels;
      for (int c = 0; c < n_panels; c += is_wide ? n_panels : 1) {
        (is_wide ? kTiles.wide : kTiles.single)[n_rows - 1](w, acts.x, begin, p + c, out);
      }
    }
    p += n_panels;
  }
}

template <class V>
void MultiplyPanels(const PackedMatrix& w, const Activations& acts, const Output& out) {
  switch (w.type) {
    case WeightType::kF32:
      return MultiplyFloat<V, WeightType::kF32>(w, acts, out);
    case WeightType::kF16:
      return MultiplyFloat<V, WeightType::kF16>(w, acts, out);
    case WeightType::kBf16:
      return MultiplyFloat<V, WeightType::kBf16>(w, acts, out);
    case WeightType::kQ8_0:
      return MultiplyQuantized<V, WeightType::kQ8_0>(w, acts, out);
    case WeightType::kQ4_0:
      return MultiplyQuantized<V, WeightType::kQ4_0>(w, acts, out);
    case WeightType::kQ4_1:
      return MultiplyQuantized<V, WeightType::kQ4_1>(w, acts, out);
    case WeightType::kQ5_0:
      return MultiplyQuantized<V, WeightType::kQ5_0>(w, acts, out);
    case WeightType::kQ5_1:
      return MultiplyQuantized<V, WeightType::kQ5_1>(w, acts, out);
    case WeightType::kQ4K:
      return MultiplyQuantized<V, WeightType::kQ4K>(w, acts, out);
    case WeightType::kQ5K:
      return MultiplyQuantized<V, WeightType::kQ5K>(w, acts, out);
    case WeightType::kQ6K:
      return MultiplyQuantized<V, WeightType::kQ6K>(w, acts, out);
  }
}

}  // namespace
}  // namespace vericache::kernels
