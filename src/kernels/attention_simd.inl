// Attention over one chunk: scores, softmax, weighted values, each for all rows before the next.
// Included by one file per instruction set, which defines V and EncodeQuery first.
//
// Prefetch: few rows read K and V at the speed of memory, so each tile asks for what comes two
// tiles later, across the change from K to V and into the next chunk; many rows only ask for the
// next tile.
#include "kernels/attention_softmax.inl"

namespace vericache::kernels {
namespace {

constexpr int kFewRows = 6;

// ---- queries
// -------------------------------------------------------------------------------------

// Packed: dq [n_rows], padded to 16, then codes [n_rows][kQueryPitch * 2].
constexpr size_t QueryScaleCount(int n_rows) { return static_cast<size_t>(n_rows + 15) / 16 * 16; }

size_t QueryBytes(int n_rows, int /*head_dim*/) {
  return sizeof(float) * QueryScaleCount(n_rows) +
         sizeof(int32_t) * kQueryPitch * static_cast<size_t>(n_rows);
}

// ---- scratch
// -------------------------------------------------------------------------------------

struct Scratch {
  float* scores;   // [rows][kScorePitch]
  int32_t* words;  // [rows][kWeightPitch]
  float* back;     // [rows][kBackPitch]
  float* tail;     // [64] value scales of a sub-block that is only partly visible

  Scratch(std::byte* memory, int n_rows) {
    const auto rows = static_cast<size_t>(n_rows);
    scores = reinterpret_cast<float*>(memory);
    words = reinterpret_cast<int32_t*>(scores + rows * kScorePitch);
    back = reinterpret_cast<float*>(words + rows * kWeightPitch);
    tail = back + rows * kBackPitch;
  }
  static size_t Bytes(int n_rows) {
    return sizeof(float) *
           (static_cast<size_t>(n_rows) * (kScorePitch + kWeightPitch + kBackPitch) +
            kSubBlockSlots);
  }
};

size_t ScratchBytes(int n_rows, int /*head_dim*/) { return Scratch::Bytes(n_rows); }

// ---- the chunk as the kernels walk it
// ------------------------------------------------------------

constexpr int RoundUpToSubBlock(int n_slots) {
  return (n_slots + kSubBlockSlots - 1) / kSubBlockSlots * kSubBlockSlots;
}

// Slots some row sees, and the sub-blocks that hold them.
struct Extent {
  int n_visible = 0;  // of the row that sees most
  int n_slots = 0;    // rounded up to 64

  explicit Extent(const AttentionTask& task) {
    const SlotRun* runs = task.runs.data();
    const size_t n_runs = task.runs.size();
    int n_present = 0;
    for (size_t i = 0; i < n_runs; ++i) n_present += runs[i].n_slots;
    for (int row = 0; row < task.n_rows; ++row) {
      if (task.n_visible[row] > n_visible) n_visible = task.n_visible[row];
    }
    if (n_visible > n_present) n_visible = n_present;
    n_slots = RoundUpToSubBlock(n_visible);
  }

  // Slots of the extent that a row sees.
  int VisibleTo(const AttentionTask& task, int row) const {
    const int limit = task.n_visible[row] < n_visible ? task.n_visible[row] : n_visible;
    return limit > 0 ? limit : 0;
  }
};

// Calls body(run, first slot of the run in the chunk, slots to read) for the runs of the extent.
template <class Body>
[[gnu::always_inline]] inline void ForRuns(const AttentionTask& task, const Extent& extent,
                                           Body&& body) {
  const SlotRun* run = task.runs.data();
  for (int first = 0; first < extent.n_slots; ++run) {
    const int rest = extent.n_slots - first;
    const int padded = RoundUpToSubBlock(run->n_slots);
    body(*run, first, rest < padded ? rest : padded);
    first += padded;
  }
}

// The bytes of a chunk in the order they are read: keys of all runs, values of all runs, and what
// the caller reads next.
class ReadOrder {
 public:
  ReadOrder(const AttentionTask& task, const Extent& extent, size_t slot_bytes) {
    ForRuns(task, extent, [&](const SlotRun& run, int, int n_slots) {
      pieces_[n_pieces_++] = {run.keys, static_cast<size_t>(n_slots) * slot_bytes};
    });
    const int n_runs = n_pieces_;
    ForRuns(task, extent, [&](const SlotRun& run, int, int) {
      const size_t bytes = pieces_[n_pieces_ - n_runs].bytes;
      pieces_[n_pieces_++] = {run.values, bytes};
    });
    if (task.prefetch != nullptr) pieces_[n_pieces_++] = {task.prefetch, 0};
  }

  // Where the byte at `offset` lies; past the end, where the last piece would go on.
  const std::byte* At(size_t offset) const {
    int i = 0;
    while (i + 1 < n_pieces_ && offset >= pieces_[i].bytes) offset -= pieces_[i++].bytes;
    return pieces_[i].begin + offset;
  }

 private:
  struct Piece {
    const std::byte* begin;
    size_t bytes;
  };
  Piece pieces_[2 * kSubBlocks + 1];
  int n_pieces_ = 0;
};

alignas(64) constexpr float kNoLogWeights[kSubBlockSlots] = {};

constexpr auto kRowsOfKeys = std::make_integer_sequence<int, V::kKeyRows>();
constexpr auto kRowsOfWideKeys = std::make_integer_sequence<int, V::kWideKeyRows>();
constexpr auto kRowsOfValues = std::make_integer_sequence<int, V::kValueRows>();

// ---- I16
// -----------------------------------------------------------------------------------------

constexpr auto kWideKeyTiles = ScoreTiles<CodesI16, V::kWideKeyVecs, kToL2>(kRowsOfWideKeys);
constexpr auto kFewKeyTiles = ScoreTiles<CodesI16, V::kKeyVecs, kToL2>(kRowsOfKeys);
constexpr auto kFirstKeyTiles = ScoreTiles<CodesI16, V::kKeyVecs, kToL1>(kRowsOfKeys);
constexpr auto kNextKeyTiles = ScoreTiles<CodesI16, V::kKeyVecs, kNone>(kRowsOfKeys);

constexpr auto kFewValueTiles = ValueTiles<CodesI16, V::kValueVecs, kToL2>(kRowsOfValues);
constexpr auto kFirstValueTiles = ValueTiles<CodesI16, V::kValueVecs, kToL1>(kRowsOfValues);
constexpr auto kNextValueTiles = ValueTiles<CodesI16, V::kValueVecs, kNone>(kRowsOfValues);
// Dims that do not fill a tile.
constexpr auto kHalfValueTiles = ValueTiles<CodesI16, 2, kToL1>(kRowsOfValues);
constexpr auto kOneValueTiles = ValueTiles<CodesI16, 1, kToL1>(kRowsOfValues);

void PackQueriesI16(const QueryRows& rows, std::byte* out) {
  auto* dq = reinterpret_cast<float*>(out);
  auto* words = reinterpret_cast<int32_t*>(dq + QueryScaleCount(rows.n_rows));
  const float scale = ScoreScale(rows.head_dim);
  for (int i = 0; i < rows.n_rows; ++i) {
    const int row = rows.first_row + i;
    const float* q = rows.q + static_cast<size_t>(row / rows.group) * rows.token_stride +
                     static_cast<size_t>(row % rows.group) * static_cast<size_t>(rows.head_dim);
    bool is_finite = true;
    auto* codes = reinterpret_cast<int16_t*>(words + static_cast<size_t>(i) * kQueryPitch);
    dq[i] = EncodeQuery(q, rows.head_dim, codes, &is_finite) * scale;
  }
}

// Scores of all rows for the slots of the extent; garbage where invisible.
void ScoreChunkI16(const AttentionTask& task, const Extent& extent, const ReadOrder& order,
                   float* scores) {
  const size_t slot_bytes = sizeof(int16_t) * static_cast<size_t>(task.head_dim);
  const auto* dq = reinterpret_cast<const float*>(task.queries);
  const auto* words = reinterpret_cast<const int32_t*>(dq + QueryScaleCount(task.n_rows));
  const RowTiles tiles(task.n_rows, V::kKeyRows);
  const bool is_few = task.n_rows <= kFewRows;
  const bool is_wide = tiles.Size(tiles.count - 1) <= V::kWideKeyRows;
  const int step = (is_wide ? V::kWideKeyVecs : V::kKeyVecs) * kWidth;
  ForRuns(task, extent, [&](const SlotRun& run, int first, int n_slots) {
    for (int slot = 0; slot < n_slots; slot += step) {
      // The distance shrinks from two tiles to one; the softmax makes up for it.
      const int done = (first + slot) / 4 + step / 4;
      const int ahead = is_few ? 2 * step - (done < step ? done : step) : step;
      KeyTile tile{.keys = run.keys + static_cast<size_t>(slot) * slot_bytes,
                   .group_bytes = kKeyGroup * slot_bytes,
                   .n_steps = task.head_dim / 2,
                   .words = words,
                   .row_scales = dq,
                   .slot_scales = run.key_scales + slot,
                   .log_weights = run.log_weights ? run.log_weights + slot : kNoLogWeights,
                   .scores = scores + first + slot,
                   .prefetch = order.At(static_cast<size_t>(first + slot + ahead) * slot_bytes)};
      for (int t = 0; t < tiles.count; ++t) {
        const int row = tiles.Begin(t);
        const int n_rows = tiles.Size(t);
        tile.words = words + static_cast<size_t>(row) * kQueryPitch;
        tile.row_scales = dq + row;
        tile.scores = scores + static_cast<ptrdiff_t>(row) * kScorePitch + first + slot;
        const auto run_tile = is_wide  ? kWideKeyTiles.of_rows[n_rows]
                              : is_few ? kFewKeyTiles.of_rows[n_rows]
                              : t == 0 ? kFirstKeyTiles.of_rows[n_rows]
                                       : kNextKeyTiles.of_rows[n_rows];
        run_tile(tile);
      }
    }
  });
}

struct SoftmaxTask {
  const AttentionTask* task;
  const Extent* extent;
  ChunkSlots slots;
  Scratch scratch;
  const std::byte* prefetch;  // read after the softmax
  int prefetch_lines;         // per row and sub-block
};

[[gnu::noinline]] void SoftmaxRows(const SoftmaxTask& softmax) {
  const AttentionTask& task = *softmax.task;
  const ChunkSlots& slots = softmax.slots;
  const int n_rows = task.n_rows;
  const int n_slots = slots.n_slots;
  const auto row_scores = [&](int row) {
    return softmax.scratch.scores + static_cast<ptrdiff_t>(row) * kScorePitch;
  };
  alignas(64) float sub_lanes[kSubBlocks][kLanes] = {};
  alignas(64) float scales[2][kSubBlocks] = {};
  const auto find_max = [&](int row) {
    if (row >= n_rows) return;
    MaskRow(row_scores(row), softmax.extent->VisibleTo(task, row), n_slots);
    task.max[row] = MaxOfRow(row_scores(row), n_slots);
  };
  const auto encode = [&](int row) {
    if (row < 0) return;
    int32_t* words = softmax.scratch.words + static_cast<ptrdiff_t>(row) * kWeightPitch;
    if (task.max[row] == kNegInf) {
      __builtin_memset(words, 0, sizeof(int32_t) * static_cast<size_t>(n_slots / 2));
    } else {
      EncodeWeights(row_scores(row), n_slots, scales[row & 1], words);
    }
  };
  const std::byte* prefetch = softmax.prefetch;
  find_max(0);
  for (int row = 0; row < n_rows; ++row) {
    find_max(row + 1);
    float* back = softmax.scratch.back + static_cast<ptrdiff_t>(row) * kBackPitch;
    if (task.max[row] == kNegInf) {
      task.sum[row] = 0.0f;
      __builtin_memset(back, 0, sizeof(float) * kSubBlocks);
    } else {
      for (int i = 0; i < softmax.prefetch_lines; ++i, prefetch += 64) {
        PrefetchLine<kToL2>(prefetch);
      }
      task.sum[row] = ExpRow(slots, task.max[row], row_scores(row),
                             row_scores(row + 2 < n_rows ? row + 2 : n_rows - 1), sub_lanes);
      SubBlockScales(sub_lanes, scales[row & 1], back);
    }
    encode(row - 1);
  }
  encode(n_rows - 1);
}

// out += weights times values, sub-block by sub-block.
void SumValuesI16(const AttentionTask& task, const Extent& extent, const ReadOrder& order,
                  const Scratch& scratch) {
  const size_t slot_bytes = sizeof(int16_t) * static_cast<size_t>(task.head_dim);
  const RowTiles tiles(task.n_rows, V::kValueRows);
  const bool is_few = task.n_rows <= kFewRows;
  const int ahead = is_few ? 2 * V::kWideKeyVecs * kWidth : kSubBlockSlots;
  const int n_vecs = task.head_dim / kWidth;
  ForRuns(task, extent, [&](const SlotRun& run, int first, int n_slots) {
    for (int slot = 0; slot < n_slots; slot += kSubBlockSlots) {
      const std::byte* prefetch =
          order.At(static_cast<size_t>(extent.n_slots + first + slot + ahead) * slot_bytes);
      const int32_t* words = scratch.words + (first + slot) / 2;
      for (int t = 0; t < tiles.count; ++t) {
        const int row = tiles.Begin(t);
        const int n_rows = tiles.Size(t);
        ValueTile tile = {};
        tile.step_bytes = 2 * slot_bytes;
        tile.words = words + static_cast<ptrdiff_t>(row) * kWeightPitch;
        tile.back = scratch.back + static_cast<ptrdiff_t>(row) * kBackPitch +
                    (first + slot) / kSubBlockSlots;
        tile.out_pitch = task.head_dim;
        tile.next_words =
            t + 1 < tiles.count ? tile.words + n_rows * kWeightPitch : words + kSubBlockSlots / 2;
        for (int v = 0; v < n_vecs;) {
          const int rest = n_vecs - v;
          const int n = rest >= V::kValueVecs ? V::kValueVecs : rest >= 2 ? 2 : 1;
          const size_t vec_offset = static_cast<size_t>(v * kWidth) * CodesI16::kLaneBytes;
          tile.values = run.values + static_cast<size_t>(slot) * slot_bytes + vec_offset;
          tile.prefetch = prefetch + vec_offset;
          tile.out = task.out + static_cast<ptrdiff_t>(row) * task.head_dim + v * kWidth;
          const auto run_tile = n == 1              ? kOneValueTiles.of_rows[n_rows]
                                : n < V::kValueVecs ? kHalfValueTiles.of_rows[n_rows]
                                : is_few            ? kFewValueTiles.of_rows[n_rows]
                                : t == 0            ? kFirstValueTiles.of_rows[n_rows]
                                                    : kNextValueTiles.of_rows[n_rows];
          run_tile(tile);
          v += n;
        }
      }
    }
  });
}

void ClearResults(const AttentionTask& task) {
  for (int row = 0; row < task.n_rows; ++row) {
    task.max[row] = kNegInf;
    task.sum[row] = 0.0f;
  }
  __builtin_memset(
      task.out, 0,
      sizeof(float) * static_cast<size_t>(task.n_rows) * static_cast<size_t>(task.head_dim));
}

// Value scales of the extent by sub-block, with 0 where no row sees the slot.
ChunkSlots ValueScales(const AttentionTask& task, const Extent& extent, float* tail) {
  ChunkSlots slots{.n_slots = extent.n_slots, .value_scales = {}};
  ForRuns(task, extent, [&](const SlotRun& run, int first, int n_slots) {
    for (int slot = 0; slot < n_slots; slot += kSubBlockSlots) {
      const float* scales = run.value_scales + slot;
      const int n_visible = extent.n_visible - (first + slot);
      if (n_visible < kSubBlockSlots) {
        for (int x = 0; x < kSubBlockSlots; ++x) tail[x] = x < n_visible ? scales[x] : 0.0f;
        scales = tail;
      }
      slots.value_scales[(first + slot) / kSubBlockSlots] = scales;
    }
  });
  return slots;
}

void ChunkI16(const AttentionTask& task) {
  ClearResults(task);
  const Extent extent(task);
  if (extent.n_slots == 0) return;
  const Scratch scratch(task.scratch, task.n_rows);
  const size_t slot_bytes = sizeof(int16_t) * static_cast<size_t>(task.head_dim);
  const ReadOrder order(task, extent, slot_bytes);
  ScoreChunkI16(task, extent, order, scratch.scores);

  const int tile_slots = V::kWideKeyVecs * kWidth;
  const int shares = task.n_rows * (extent.n_slots / kSubBlockSlots);
  const int lines = static_cast<int>(static_cast<size_t>(tile_slots) * slot_bytes / 64) / shares;
  SoftmaxRows({.task = &task,
               .extent = &extent,
               .slots = ValueScales(task, extent, scratch.tail),
               .scratch = scratch,
               .prefetch = order.At(static_cast<size_t>(extent.n_slots + tile_slots) * slot_bytes),
               .prefetch_lines = task.n_rows <= kFewRows ? (lines > 0 ? lines : 1) : 0});
  SumValuesI16(task, extent, order, scratch);
}

void ScoresI16(const AttentionTask& task, float* scores) {
  const Extent extent(task);
  const Scratch scratch(task.scratch, task.n_rows);
  int n_present = 0;
  for (size_t i = 0; i < task.runs.size(); ++i) n_present += task.runs.data()[i].n_slots;
  if (extent.n_slots > 0) {
    const size_t slot_bytes = sizeof(int16_t) * static_cast<size_t>(task.head_dim);
    ScoreChunkI16(task, extent, ReadOrder(task, extent, slot_bytes), scratch.scores);
  }
  for (int row = 0; row < task.n_rows; ++row) {
    const int n_visible = extent.VisibleTo(task, row);
    float* out = scores + static_cast<ptrdiff_t>(row) * kChunkSlots;
    __builtin_memcpy(out, scratch.scores + static_cast<ptrdiff_t>(row) * kScorePitch,
                     sizeof(float) * static_cast<size_t>(n_visible));
    MaskRow(out, n_visible, RoundUpToSubBlock(n_present));
  }
}

constexpr AttentionKernels TableI16() {
  return {QueryBytes, PackQueriesI16, ScratchBytes, ChunkI16, ScoresI16};
}

// ---- merge and finish
// ----------------------------------------------------------------------------

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
