#include "compress/window_scores.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/aligned_buffer.h"
#include "base/check.h"
#include "kernels/hadamard.h"
#include "kernels/numerics.h"
#include "kv/head_view.h"
#include "kv/slices.h"

namespace vericache::compress {
namespace {

using kernels::kChunkSlots;
using kernels::kLanes;

// Query rows scored at once: their scores against a long context stay in the second-level cache.
constexpr int kRowsAtOnce = 12;
static_assert(kChunkSlots % kLanes == 0);

// One chunk of one segment, as scored for a block of rows.
struct Chunk {
  kernels::KvFormat format;
  int n_slots;
  int first_slot;  // in the list of all slots
  std::vector<kernels::SlotRun> runs;
  const kv::Segment* segment;
  int begin;  // in the segment
};

// exp2 of x <= 0; -inf gives 0. Without a branch, so that loops over it vectorise.
inline float Exp2Unfused(float x) {
  const float z = x + kernels::kRoundBias;
  const float f = x - (z - kernels::kRoundBias);
  float p = kernels::kExp2C5 * f + kernels::kExp2C4;
  p = p * f + kernels::kExp2C3;
  p = p * f + kernels::kExp2C2;
  p = p * f + kernels::kExp2C1;
  p = p * f + 1.0f;
  const uint32_t kept = x >= kernels::kExp2Floor ? ~uint32_t{0} : uint32_t{0};
  return kernels::BitsFloat((kernels::FloatBits(p) + (kernels::FloatBits(z) << 23)) & kept);
}

float MaxOf(const float* scores, float max) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, max);
  for (int i = 0; i < kChunkSlots; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = scores[i + lane] > lanes[lane] ? scores[i + lane] : lanes[lane];
    }
  }
  return *std::max_element(lanes, lanes + kLanes);
}

// scores = exp2(scores - max); lanes += their sums.
void ExpInPlace(float* scores, float max, float (&lanes)[kLanes]) {
  for (int i = 0; i < kChunkSlots; ++i) scores[i] = Exp2Unfused(scores[i] - max);
  float sums[kLanes];
  std::copy_n(lanes, kLanes, sums);
  for (int i = 0; i < kChunkSlots; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += scores[i + lane];
  }
  std::copy_n(sums, kLanes, lanes);
}

void AddScaled(const float* e, float scale, int n, float* sums) {
  for (int i = 0; i < n; ++i) sums[i] += e[i] * scale;
}

// The scoring of one head: chunks fixed, rows block by block.
class Scorer {
 public:
  Scorer(const Job& job, const WindowJob& window)
      : kernels_(*job.kernels),
        queries_(job.hints->window),
        head_dim_(queries_.head_dim),
        group_(queries_.n_heads / job.source->Shape().n_kv_heads),
        view_(*job.source, window.layer, window.head, queries_.positions.back() + 1) {
    VC_CHECK(queries_.head_dim == view_.HeadDim(), "queries of {} dims, keys of {}",
             queries_.head_dim, view_.HeadDim());
    const auto head_at = static_cast<size_t>(window.head * group_) * static_cast<size_t>(head_dim_);
    q_ = queries_.q[static_cast<size_t>(window.layer)].data() + head_at;
    CutChunks();
    scores_ = AlignedBuffer(chunks_.size() * kRowsAtOnce * kChunkSlots * sizeof(float));
  }

  std::vector<float> Sum(int n_queries) {
    std::vector<float> sums(static_cast<size_t>(view_.Count()), 0.0f);
    const int n_tokens = static_cast<int>(queries_.positions.size());
    const int begin = std::max(0, n_tokens - n_queries) * group_;
    const int end = n_tokens * group_;
    for (int row = begin; row < end; row += kRowsAtOnce) {
      const int n_rows = std::min(kRowsAtOnce, end - row);
      for (size_t i = 0; i < chunks_.size(); ++i) ScoreChunk(i, row, n_rows);
      for (int i = 0; i < n_rows; ++i) AddRow(i, sums);
    }
    return sums;
  }

 private:
  void CutChunks() {
    int first_slot = 0;
    for (const kv::Segment& segment : view_.Segments()) {
      for (int begin = 0; begin < segment.n_slots; begin += kChunkSlots) {
        const int n = std::min(kChunkSlots, segment.n_slots - begin);
        kernels::SlotRun runs[kv::kMaxChunkRuns];
        const auto filled = kv::SliceSegment(segment, head_dim_, begin, n, runs);
        chunks_.push_back({.format = segment.format,
                           .n_slots = n,
                           .first_slot = first_slot,
                           .runs = {filled.begin(), filled.end()},
                           .segment = &segment,
                           .begin = begin});
        first_slot += n;
      }
    }
  }

  // Scores of row i of the block against the chunk.
  float* ScoresOf(size_t chunk_idx, int row) {
    const size_t at = chunk_idx * kRowsAtOnce + static_cast<size_t>(row);
    return scores_.As<float>() + at * kChunkSlots;
  }

  void ScoreChunk(size_t chunk_idx, int first_row, int n_rows) {
    const Chunk& chunk = chunks_[chunk_idx];
    const auto& format = kernels_.attention[static_cast<size_t>(chunk.format)];
    packed_.Ensure(format.query_bytes(n_rows, head_dim_));
    scratch_.Ensure(format.scratch_bytes(n_rows, head_dim_));
    CopyQueries(first_row, n_rows, chunk.segment->is_rotated);
    format.pack_queries({.q = rows_.data(),
                         .token_stride = static_cast<size_t>(head_dim_),
                         .group = 1,
                         .first_row = 0,
                         .n_rows = n_rows,
                         .head_dim = head_dim_},
                        packed_.data());
    int32_t n_visible[kRowsAtOnce];
    for (int i = 0; i < n_rows; ++i) {
      const auto token = static_cast<size_t>((first_row + i) / group_);
      const int n_before = chunk.segment->CountBefore(queries_.positions[token] + 1);
      n_visible[i] = std::clamp(n_before - chunk.begin, 0, chunk.n_slots);
    }
    float* scores = ScoresOf(chunk_idx, 0);
    format.scores({.head_dim = head_dim_,
                   .n_rows = n_rows,
                   .queries = packed_.data(),
                   .runs = chunk.runs,
                   .n_visible = n_visible,
                   .scratch = scratch_.data()},
                  scores);
    PadRows(chunk.n_slots, n_rows, scores);
  }

  // The queries of rows in a row, rotated if what they are to meet is.
  void CopyQueries(int first_row, int n_rows, bool is_rotated) {
    rows_.clear();
    const auto dims = static_cast<size_t>(head_dim_);
    const size_t per_token = static_cast<size_t>(queries_.n_heads) * dims;
    for (int row = first_row; row < first_row + n_rows; ++row) {
      const auto token = static_cast<size_t>(row / group_);
      const float* q = q_ + token * per_token + static_cast<size_t>(row % group_) * dims;
      rows_.insert(rows_.end(), q, q + dims);
      if (is_rotated) kernels::Rotate(rows_.data() + rows_.size() - dims, head_dim_);
    }
  }

  // The kernel fills whole sub-blocks only; the passes below read whole chunks.
  static void PadRows(int n_slots, int n_rows, float* scores) {
    for (int i = 0; i < n_rows; ++i) {
      std::fill(scores + i * kChunkSlots + n_slots, scores + (i + 1) * kChunkSlots,
                -std::numeric_limits<float>::infinity());
    }
  }

  void AddRow(int row, std::vector<float>& sums) {
    float max = -std::numeric_limits<float>::infinity();
    for (size_t i = 0; i < chunks_.size(); ++i) max = MaxOf(ScoresOf(i, row), max);
    if (max == -std::numeric_limits<float>::infinity()) return;  // nothing visible
    float lanes[kLanes] = {};
    for (size_t i = 0; i < chunks_.size(); ++i) ExpInPlace(ScoresOf(i, row), max, lanes);
    const float scale = 1.0f / kernels::TreeSum(lanes);
    for (size_t i = 0; i < chunks_.size(); ++i) {
      AddScaled(ScoresOf(i, row), scale, chunks_[i].n_slots, sums.data() + chunks_[i].first_slot);
    }
  }

  const kernels::KernelTable& kernels_;
  const WindowQueries& queries_;
  int head_dim_;
  int group_;  // query heads per KV head
  kv::HeadView view_;
  const float* q_ = nullptr;  // of the first token, first query head of the KV head
  std::vector<Chunk> chunks_;
  std::vector<float> rows_;  // [n_rows, head_dim]
  AlignedBuffer packed_;
  AlignedBuffer scratch_;
  AlignedBuffer scores_;  // [chunks][kRowsAtOnce][512]
};

}  // namespace

std::vector<float> WindowScores(const Job& job, const WindowJob& window) {
  return Scorer(job, window).Sum(window.n_queries);
}

}  // namespace vericache::compress
