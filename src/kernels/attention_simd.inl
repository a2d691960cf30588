// Attention over one chunk: scores, softmax, weighted values, each for all rows before the next.
// Included by one file per instruction set, which defines V and EncodeQuery first.
//
// Prefetch: few rows read K and V at the speed of memory, so each tile asks for what comes two
// tiles later, across the change from K to V and into the next chunk; many rows only ask for the
// next tile.
#include "kernels/attention_queries.inl"
#include "kernels/attention_softmax.inl"

namespace vericache::kernels {
namespace {

constexpr int kFewRows = 6;
alignas(64) constexpr float kNoLogWeights[kSubBlockSlots] = {};

constexpr int RoundUpToSubBlock(int n_slots) {
  return (n_slots + kSubBlockSlots - 1) / kSubBlockSlots * kSubBlockSlots;
}

// ---- scratch ------------------------------------------------------------------------------------

struct Scratch {
  float* scores;       // [rows][kScorePitch]
  int32_t* words;      // [rows][kWeightPitch]
  WeightRow* weights;  // [rows]
  float* tail;         // [2][64] value scales and mids of a sub-block that is only partly visible
  PackedQueries folded[2];  // packed formats: queries of this group of slots and of the next

  Scratch(std::byte* memory, int n_rows)
      : folded{
            PackedQueries(memory + FoldedOffset(n_rows), n_rows),
            PackedQueries(memory + FoldedOffset(n_rows) + PackedQueries::Bytes(n_rows), n_rows)} {
    const auto rows = static_cast<size_t>(n_rows);
    scores = reinterpret_cast<float*>(memory);
    words = reinterpret_cast<int32_t*>(scores + rows * kScorePitch);
    weights = reinterpret_cast<WeightRow*>(words + rows * kWeightPitch);
    tail = reinterpret_cast<float*>(memory + RowBytes(n_rows));
  }
  template <class Codes>
  static size_t Bytes(int n_rows, int /*head_dim*/) {
    return FoldedOffset(n_rows) + (Codes::kIsPacked ? 2 * PackedQueries::Bytes(n_rows) : 0);
  }

 private:
  static size_t FoldedOffset(int n_rows) {
    return RowBytes(n_rows) + sizeof(float) * 2 * kSubBlockSlots;
  }
  static size_t RowBytes(int n_rows) {
    return static_cast<size_t>(n_rows) *
           (sizeof(float) * (kScorePitch + kWeightPitch) + sizeof(WeightRow));
  }
};

// ---- the chunk as the kernels walk it -----------------------------------------------------------

int PresentSlots(const AttentionTask& task) {
  const SlotRun* runs = task.runs.data();
  int n_slots = 0;
  for (size_t i = 0; i < task.runs.size(); ++i) n_slots += runs[i].n_slots;
  return n_slots;
}

// 64 slots of a chunk.
struct SlotGroupPlace {
  const SlotRun* run;
  int slot;  // within the run
};

// The groups of one chunk that some row sees, in slot order.
template <class Codes>
struct ChunkRead {
  explicit ChunkRead(const AttentionTask& chunk)
      : task(chunk),
        slot_bytes(KeyBytes(Codes::kFormat, chunk.head_dim, kSubBlockSlots) / kSubBlockSlots) {
    const int n_present = PresentSlots(task);
    for (int row = 0; row < task.n_rows; ++row) {
      if (task.n_visible[row] > n_visible) n_visible = task.n_visible[row];
    }
    if (n_visible > n_present) n_visible = n_present;
    const int n_needed = RoundUpToSubBlock(n_visible) / kSubBlockSlots;
    for (const SlotRun* run = task.runs.data(); n_groups < n_needed; ++run) {
      for (int slot = 0; slot < run->n_slots && n_groups < n_needed; slot += kSubBlockSlots) {
        groups[n_groups++] = {run, slot};
      }
    }
  }

  // Slots that a row sees.
  int VisibleTo(int row) const {
    const int limit = task.n_visible[row] < n_visible ? task.n_visible[row] : n_visible;
    return limit > 0 ? limit : 0;
  }
  int SlotCount() const { return n_groups * kSubBlockSlots; }
  const std::byte* Keys(const SlotGroupPlace& group) const {
    return group.run->keys + static_cast<size_t>(group.slot) * slot_bytes;
  }
  const std::byte* Values(const SlotGroupPlace& group) const {
    return group.run->values + static_cast<size_t>(group.slot) * slot_bytes;
  }
  // Address of what is read `n_slots` slots into the chunk: keys, values, what the caller reads
  // next.
  const std::byte* At(int n_slots) const {
    const int g = n_slots / kSubBlockSlots;
    const size_t rest = static_cast<size_t>(n_slots % kSubBlockSlots) * slot_bytes;
    if (g < n_groups) return Keys(groups[g]) + rest;
    if (g < 2 * n_groups) return Values(groups[g - n_groups]) + rest;
    const size_t past = static_cast<size_t>(n_slots - 2 * SlotCount()) * slot_bytes;
    return task.prefetch != nullptr ? task.prefetch + past : Values(groups[n_groups - 1]);
  }

  const AttentionTask& task;
  size_t slot_bytes;
  int n_visible = 0;  // slots that some row sees
  int n_groups = 0;
  SlotGroupPlace groups[kSubBlocks];
};

// ---- scores -------------------------------------------------------------------------------------

// The tiles of a format, by how they prefetch.
// Rows that do not fit one tile are cut evenly: no tile has less than half of the largest.
template <class Codes>
struct KeyTiles {
  static constexpr int kHalf = Codes::kKeyRows / 2;
  static constexpr auto kRows = std::make_integer_sequence<int, Codes::kKeyRows - kHalf + 1>();
  static constexpr auto kWideRows = std::make_integer_sequence<int, Codes::kWideKeyRows>();
  static constexpr auto kWide = ScoreTiles<Codes, V::kWideKeyVecs, kToL2, 1>(kWideRows);
  static constexpr auto kFew = ScoreTiles<Codes, V::kKeyVecs, kToL2, kHalf>(kRows);
  static constexpr auto kFirst = ScoreTiles<Codes, V::kKeyVecs, Codes::kManyHint, kHalf>(kRows);
  static constexpr auto kNext = ScoreTiles<Codes, V::kKeyVecs, kNone, kHalf>(kRows);
  static_assert(Codes::kWideKeyRows + 1 >= kHalf);
};

// Scores of all rows for a group; garbage where invisible.
template <class Codes>
[[gnu::always_inline]] inline void ScoreGroup(const ChunkRead<Codes>& read, int g,
                                              const PackedQueries& queries, float* scores) {
  using Tiles = KeyTiles<Codes>;
  const AttentionTask& task = read.task;
  const auto [run, slot] = read.groups[g];
  const RowTiles tiles(task.n_rows, Codes::kKeyRows);
  const bool is_few = task.n_rows <= kFewRows;
  const bool is_wide = tiles.Largest() <= Codes::kWideKeyRows;
  const int step = (is_wide ? V::kWideKeyVecs : V::kKeyVecs) * kWidth;
  KeyTile tile = {};
  tile.group_bytes = kKeyGroup * read.slot_bytes;
  tile.n_steps = task.head_dim / (Codes::kWords * Codes::kTermsPerWord);
  for (int x = 0; x < kSubBlockSlots; x += step) {
    const int chunk_slot = g * kSubBlockSlots + x;
    // The distance shrinks from two tiles to one; the softmax makes up for it.
    const int done = chunk_slot / 4 + step / 4;
    const int ahead = is_few ? 2 * step - (done < step ? done : step) : step;
    tile.keys = read.Keys(read.groups[g]) + static_cast<size_t>(x) * read.slot_bytes;
    tile.slot_scales = run->key_scales + slot + x;
    tile.log_weights = run->log_weights != nullptr ? run->log_weights + slot + x : kNoLogWeights;
    tile.prefetch = read.At(chunk_slot + ahead);
    for (int t = 0; t < tiles.count; ++t) {
      const int row = tiles.Begin(t);
      const int n_rows = tiles.Size(t);
      tile.words = queries.words + static_cast<ptrdiff_t>(row) * kQueryPitch;
      tile.rows = queries.rows + row;
      tile.scores = scores + static_cast<ptrdiff_t>(row) * kScorePitch + chunk_slot;
      if (is_wide) {
        Tiles::kWide.Run(n_rows, tile);
      } else if (is_few) {
        Tiles::kFew.Run(n_rows, tile);
      } else if (t == 0) {
        Tiles::kFirst.Run(n_rows, tile);
      } else {
        Tiles::kNext.Run(n_rows, tile);
      }
    }
  }
}

template <class Codes>
void ScoreChunk(const ChunkRead<Codes>& read, const Scratch& scratch) {
  const AttentionTask& task = read.task;
  if constexpr (!Codes::kIsPacked) {
    const PackedQueries queries(const_cast<std::byte*>(task.queries), task.n_rows);
    for (int g = 0; g < read.n_groups; ++g) ScoreGroup(read, g, queries, scratch.scores);
  } else {
    // One group ahead, so that folding, a chain of long latencies, overlaps with the dots.
    const auto fold = [&](int g) {
      const auto [run, slot] = read.groups[g];
      FoldQueries<Codes>(task, run->key_scales + KeyScaleIndex(task.head_dim, slot, 0),
                         scratch.folded[g % 2]);
    };
    if (read.n_groups > 0) fold(0);
    for (int g = 0; g < read.n_groups; ++g) {
      if (g + 1 < read.n_groups) fold(g + 1);
      ScoreGroup(read, g, scratch.folded[g % 2], scratch.scores);
    }
  }
}

// ---- softmax ------------------------------------------------------------------------------------

// Scales and mids of the values by sub-block, with 0 where no row sees the slot.
template <class Codes>
ChunkSlots ValueScales(const ChunkRead<Codes>& read, float* tail) {
  ChunkSlots slots = {.n_slots = read.SlotCount(), .value_scales = {}, .value_mids = {}};
  for (int g = 0; g < read.n_groups; ++g) {
    const auto [run, slot] = read.groups[g];
    const float* scales =
        run->value_scales + (Codes::kIsPacked ? ValueScaleIndex(slot) : static_cast<size_t>(slot));
    const float* mids = Codes::kIsPacked ? scales + kSubBlockSlots : nullptr;
    const int n_visible = read.n_visible - g * kSubBlockSlots;
    if (n_visible < kSubBlockSlots) {  // the last group only
      for (int x = 0; x < kSubBlockSlots; ++x) {
        tail[x] = x < n_visible ? scales[x] : 0.0f;
        tail[kSubBlockSlots + x] = Codes::kIsPacked && x < n_visible ? mids[x] : 0.0f;
      }
      scales = tail;
      mids = tail + kSubBlockSlots;
    }
    slots.value_scales[g] = scales;
    slots.value_mids[g] = mids;
  }
  return slots;
}

// Prefetched during the softmax: a tile's worth of values, spread over the rows.
struct SoftmaxPrefetch {
  const std::byte* begin;
  int lines_per_row;
};

template <class Codes>
SoftmaxPrefetch PrefetchOf(const ChunkRead<Codes>& read) {
  const int n_rows = read.task.n_rows;
  const int tile_slots = V::kWideKeyVecs * kWidth;
  const int lines = static_cast<int>(static_cast<size_t>(tile_slots) * read.slot_bytes / 64);
  return {read.At(read.SlotCount() + tile_slots),
          n_rows <= kFewRows ? (lines + n_rows - 1) / n_rows : 0};
}

// Scores of all rows to codes of their weights; writes max, sum and what out starts from.
template <class Codes>
[[gnu::noinline]] void SoftmaxRows(const ChunkRead<Codes>& read, const Scratch& scratch) {
  const AttentionTask& task = read.task;
  const ChunkSlots slots = ValueScales(read, scratch.tail);
  const int n_rows = task.n_rows;
  const int n_slots = slots.n_slots;
  const auto row_scores = [&](int row) {
    return scratch.scores + static_cast<ptrdiff_t>(row) * kScorePitch;
  };
  alignas(64) float ranges[kSubBlocks][kLanes] = {};
  alignas(64) float scales[2][kSubBlocks] = {};
  const auto find_max = [&](int row) {
    if (row >= n_rows) return;
    MaskRow(row_scores(row), read.VisibleTo(row), n_slots);
    task.max[row] = MaxOfRow(row_scores(row), n_slots);
  };
  const auto encode = [&](int row) {
    if (row < 0) return;
    int32_t* words = scratch.words + static_cast<ptrdiff_t>(row) * kWeightPitch;
    if (task.max[row] == kNegInf) {
      __builtin_memset(words, 0, sizeof(int32_t) * static_cast<size_t>(n_slots / 2));
    } else {
      EncodeWeights<Codes>(row_scores(row), n_slots, scales[row & 1], words, scratch.weights[row]);
    }
  };
  const SoftmaxPrefetch prefetch = PrefetchOf(read);
  find_max(0);
  for (int row = 0; row < n_rows; ++row) {
    find_max(row + 1);
    RowSums sums = {0.0f, 0.0f};
    if (task.max[row] == kNegInf) {
      scratch.weights[row] = {};
    } else {
      for (int i = 0; i < prefetch.lines_per_row; ++i) {
        PrefetchLine<kToL2>(prefetch.begin + 64 * (row * prefetch.lines_per_row + i));
      }
      sums = ExpRow<Codes>(slots, task.max[row], row_scores(row),
                           row_scores(row + 2 < n_rows ? row + 2 : n_rows - 1), ranges);
      SubBlockScales<Codes>(ranges, scales[row & 1], scratch.weights[row].back);
    }
    task.sum[row] = sums.weights;
    float* out = task.out + static_cast<ptrdiff_t>(row) * task.head_dim;
    for (int c = 0; c < task.head_dim; c += kWidth) V::Store(out + c, V::Set(sums.mids));
    encode(row - 1);
  }
  encode(n_rows - 1);
}

// ---- weighted values ----------------------------------------------------------------------------

template <class Codes>
struct SumTiles {
  static constexpr int kHalf = Codes::kValueRows / 2;
  static constexpr auto kAnyRows = std::make_integer_sequence<int, Codes::kValueRows>();
  static constexpr auto kRows = std::make_integer_sequence<int, Codes::kValueRows - kHalf + 1>();
  static constexpr auto kFew = ValueTiles<Codes, V::kValueVecs, kToL2, 1>(kAnyRows);
  static constexpr auto kFirst = ValueTiles<Codes, V::kValueVecs, Codes::kManyHint, kHalf>(kRows);
  static constexpr auto kNext = ValueTiles<Codes, V::kValueVecs, kNone, kHalf>(kRows);
  // Dims that do not fill a tile.
  static constexpr auto kTwo = ValueTiles<Codes, 2, Codes::kManyHint, 1>(kAnyRows);
  static constexpr auto kOne = ValueTiles<Codes, 1, Codes::kManyHint, 1>(kAnyRows);
  static_assert(kFewRows >= Codes::kValueRows);
};

// out += weights times the values of a group.
template <class Codes>
[[gnu::always_inline]] inline void SumGroup(const ChunkRead<Codes>& read, int g,
                                            const Scratch& scratch) {
  using Tiles = SumTiles<Codes>;
  const AttentionTask& task = read.task;
  const RowTiles tiles(task.n_rows, Codes::kValueRows);
  const bool is_few = task.n_rows <= kFewRows;
  const int ahead = is_few ? 2 * V::kWideKeyVecs * kWidth : kSubBlockSlots;
  const std::byte* prefetch = read.At(read.SlotCount() + g * kSubBlockSlots + ahead);
  const int n_vecs = task.head_dim / kWidth;
  constexpr int kWordsOfGroup = kSubBlockSlots / Codes::kTermsPerWord;
  const int32_t* words = scratch.words + g * kWordsOfGroup;
  ValueTile tile = {};
  tile.step_bytes = static_cast<size_t>(task.head_dim) * Codes::kLaneBytes;
  tile.sub_block = g;
  tile.out_pitch = task.head_dim;
  for (int t = 0; t < tiles.count; ++t) {
    const int row = tiles.Begin(t);
    const int n_rows = tiles.Size(t);
    tile.words = words + static_cast<ptrdiff_t>(row) * kWeightPitch;
    tile.next_words =
        t + 1 < tiles.count ? tile.words + n_rows * kWeightPitch : words + kWordsOfGroup;
    tile.rows = scratch.weights + row;
    for (int v = 0; v < n_vecs;) {
      const int rest = n_vecs - v;
      const int n = rest >= V::kValueVecs ? V::kValueVecs : rest >= 2 ? 2 : 1;
      const size_t vec_offset = static_cast<size_t>(v * kWidth) * Codes::kLaneBytes;
      tile.values = read.Values(read.groups[g]) + vec_offset;
      tile.prefetch = prefetch + vec_offset;
      tile.out = task.out + static_cast<ptrdiff_t>(row) * task.head_dim + v * kWidth;
      if (n == 1) {
        Tiles::kOne.Run(n_rows, tile);
      } else if (n < V::kValueVecs) {
        Tiles::kTwo.Run(n_rows, tile);
      } else if (is_few) {
        Tiles::kFew.Run(n_rows, tile);
      } else if (t == 0) {
        Tiles::kFirst.Run(n_rows, tile);
      } else {
        Tiles::kNext.Run(n_rows, tile);
      }
      v += n;
    }
  }
}

// ---- the table ----------------------------------------------------------------------------------

void ClearResults(const AttentionTask& task) {
  for (int row = 0; row < task.n_rows; ++row) {
    task.max[row] = kNegInf;
    task.sum[row] = 0.0f;
  }
  __builtin_memset(
      task.out, 0,
      sizeof(float) * static_cast<size_t>(task.n_rows) * static_cast<size_t>(task.head_dim));
}

template <class Codes>
void AttendChunk(const AttentionTask& task) {
  const ChunkRead<Codes> read(task);
  if (read.n_groups == 0) return ClearResults(task);
  const Scratch scratch(task.scratch, task.n_rows);
  ScoreChunk(read, scratch);
  SoftmaxRows(read, scratch);
  for (int g = 0; g < read.n_groups; ++g) SumGroup(read, g, scratch);
}

template <class Codes>
void WriteScores(const AttentionTask& task, float* scores) {
  const ChunkRead<Codes> read(task);
  const Scratch scratch(task.scratch, task.n_rows);
  ScoreChunk(read, scratch);
  const int n_padded = RoundUpToSubBlock(PresentSlots(task));
  for (int row = 0; row < task.n_rows; ++row) {
    const int n_visible = read.VisibleTo(row);
    float* out = scores + static_cast<ptrdiff_t>(row) * kChunkSlots;
    __builtin_memcpy(out, scratch.scores + static_cast<ptrdiff_t>(row) * kScorePitch,
                     sizeof(float) * static_cast<size_t>(n_visible));
    MaskRow(out, n_visible, n_padded);
  }
}

template <class Codes>
constexpr AttentionKernels Table() {
  return {QueryBytes<Codes>, PackQueries<Codes>, Scratch::Bytes<Codes>, AttendChunk<Codes>,
          WriteScores<Codes>};
}

// ---- merge and finish ---------------------------------------------------------------------------

struct Partial {
  float& max;
  float& sum;
  float* out;
};
struct ChunkPartial {
  float max;
  float sum;
  const float* out;
};

[[gnu::always_inline]] inline void MergeRow(Partial total, ChunkPartial chunk, int head_dim) {
  if (chunk.max == kNegInf) return;
  const float new_max = chunk.max > total.max ? chunk.max : total.max;
  const float a = Exp2(total.max - new_max);
  const float b = Exp2(chunk.max - new_max);
  total.max = new_max;
  total.sum = Fma(total.sum, a, chunk.sum * b);
  const Float va = V::Set(a);
  const Float vb = V::Set(b);
  for (int c = 0; c < head_dim; c += kWidth) {
    V::Store(total.out + c, V::Fma(V::Load(total.out + c), va, V::Mul(V::Load(chunk.out + c), vb)));
  }
}

[[gnu::always_inline]] inline void FinishRow(float sum, const float* out, int head_dim,
                                             float* result) {
  const Float inverse = V::Set(sum > 0.0f ? 1.0f / sum : 0.0f);
  for (int c = 0; c < head_dim; c += kWidth) {
    V::Store(result + c, V::Mul(V::Load(out + c), inverse));
  }
}

}  // namespace
}  // namespace vericache::kernels
