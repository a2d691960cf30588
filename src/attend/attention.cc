#include "attend/attention.h"

#include <algorithm>
#include <limits>

#include "attend/slices.h"
#include "base/check.h"
#include "kernels/hadamard.h"

namespace vericache::attend {
namespace {

using kernels::kChunkSlots;
using kernels::kKvFormatCount;

constexpr float kNegInf = -std::numeric_limits<float>::infinity();

// What a task's rows got from one chunk, or from all chunks so far.
struct RowResults {
  float* max;  // [n_rows]
  float* sum;  // [n_rows]
  float* out;  // [n_rows, head_dim]
};

// The keys at a slot of a segment: what a task that starts there reads first.
const std::byte* KeysAt(const kv::Segment& segment, int head_dim, int slot) {
  kernels::SlotRun runs[kMaxChunkRuns];
  return SliceSegment(segment, head_dim, slot, 1, runs).front().keys;
}

}  // namespace

// One member's memory, and what it remembers from task to task.
class Attention::Worker {
 public:
  explicit Worker(Attention& owner);

  void BeginLayer(int layer, const float* q, float* out);
  // tasks[idx]; the ones behind it tell what to prefetch.
  void Run(std::span<const Task> tasks, size_t idx);

 private:
  struct Packed {
    AlignedBuffer queries;
    int group_idx = -1;
    int kv_head = -1;
    int first_row = -1;
    bool is_rotated = false;
  };

  const Group& GroupOf(const Task& task) const {
    return owner_.groups_[static_cast<size_t>(task.group_idx)];
  }
  // New tokens of the group that the task's query rows belong to, or lie behind.
  int TokenEnd(const Task& task) const {
    return (task.first_row + task.n_rows - 1) / owner_.shape_.Group() + 1;
  }
  void FindSegments(const Task& task);
  kernels::QueryRows QueriesOf(const Task& task) const;
  // The same, rotated.
  kernels::QueryRows RotatedQueriesOf(const Task& task);
  const std::byte* PackQueries(const Task& task, const kv::Segment& segment);
  const std::byte* NextKeys(std::span<const Task> tasks, size_t idx);
  void RunChunk(const Task& task, const std::byte* prefetch, const RowResults& results);
  void WalkChunks(Task task);
  void Finish(const Task& task, const RowResults& results);

  Attention& owner_;
  int layer_ = -1;
  const float* q_ = nullptr;
  float* out_ = nullptr;

  int segments_group_ = -1;  // whose segments_ these are
  int segments_head_ = -1;
  std::vector<kv::Segment> segments_;
  std::vector<kv::Segment> next_segments_;
  Packed packed_[kKvFormatCount];
  AlignedBuffer rotated_queries_;  // kMaxTaskRows rows
  int32_t n_visible_[kMaxTaskRows] = {};
  AlignedBuffer scratch_;
  AlignedBuffer chunk_results_;  // max, sum, out of kMaxTaskRows rows
  AlignedBuffer row_results_;
};

Attention::Worker::Worker(Attention& owner) : owner_(owner) {
  const int head_dim = owner.shape_.head_dim;
  for (int format = 0; format < kKvFormatCount; ++format) {
    const kernels::AttentionKernels& kernels = owner.kernels_.attention[format];
    packed_[format].queries = AlignedBuffer(kernels.query_bytes(kMaxTaskRows, head_dim));
    scratch_.Ensure(kernels.scratch_bytes(kMaxTaskRows, head_dim));
  }
  rotated_queries_ =
      AlignedBuffer(size_t{kMaxTaskRows} * static_cast<size_t>(head_dim) * sizeof(float));
  const size_t n_floats = size_t{kMaxTaskRows} * static_cast<size_t>(head_dim + 2);
  chunk_results_ = AlignedBuffer(n_floats * sizeof(float));
  row_results_ = AlignedBuffer(n_floats * sizeof(float));
}

void Attention::Worker::BeginLayer(int layer, const float* q, float* out) {
  layer_ = layer;
  q_ = q;
  out_ = out;
  segments_group_ = -1;
  for (Packed& packed : packed_) packed.group_idx = -1;
}

void Attention::Worker::FindSegments(const Task& task) {
  if (segments_group_ == task.group_idx && segments_head_ == task.kv_head) return;
  segments_group_ = task.group_idx;
  segments_head_ = task.kv_head;
  segments_.clear();
  GroupOf(task).kv->Segments(layer_, task.kv_head, segments_);
}

kernels::QueryRows Attention::Worker::QueriesOf(const Task& task) const {
  const HeadShape& shape = owner_.shape_;
  const size_t stride = static_cast<size_t>(shape.n_heads) * static_cast<size_t>(shape.head_dim);
  const int first_dim = task.kv_head * shape.Group() * shape.head_dim;
  return {.q = q_ + static_cast<size_t>(GroupOf(task).first_row) * stride + first_dim,
          .token_stride = stride,
          .group = shape.Group(),
          .first_row = task.first_row,
          .n_rows = task.n_rows,
          .head_dim = shape.head_dim};
}

kernels::QueryRows Attention::Worker::RotatedQueriesOf(const Task& task) {
  const auto rows = QueriesOf(task);
  auto* rotated = rotated_queries_.As<float>();
  const auto head_dim = static_cast<size_t>(rows.head_dim);
  for (int i = 0; i < rows.n_rows; ++i) {
    const auto row = static_cast<size_t>(rows.first_row + i);
    const auto group = static_cast<size_t>(rows.group);
    float* q = rotated + static_cast<size_t>(i) * head_dim;
    std::copy_n(rows.q + row / group * rows.token_stride + row % group * head_dim, head_dim, q);
    kernels::Rotate(q, rows.head_dim);
  }
  return {.q = rotated,
          .token_stride = head_dim,
          .group = 1,
          .first_row = 0,
          .n_rows = rows.n_rows,
          .head_dim = rows.head_dim};
}

const std::byte* Attention::Worker::PackQueries(const Task& task, const kv::Segment& segment) {
  const auto format = static_cast<size_t>(segment.format);
  Packed& packed = packed_[format];
  if (packed.group_idx != task.group_idx || packed.kv_head != task.kv_head ||
      packed.first_row != task.first_row || packed.is_rotated != segment.is_rotated) {
    owner_.kernels_.attention[format].pack_queries(
        segment.is_rotated ? RotatedQueriesOf(task) : QueriesOf(task), packed.queries.data());
    packed.group_idx = task.group_idx;
    packed.kv_head = task.kv_head;
    packed.first_row = task.first_row;
    packed.is_rotated = segment.is_rotated;
  }
  return packed.queries.data();
}

const std::byte* Attention::Worker::NextKeys(std::span<const Task> tasks, size_t idx) {
  if (idx + 1 >= tasks.size()) return nullptr;
  const Task& next = tasks[idx + 1];
  const bool is_same_head =
      next.group_idx == tasks[idx].group_idx && next.kv_head == tasks[idx].kv_head;
  if (!is_same_head) {
    next_segments_.clear();
    GroupOf(next).kv->Segments(layer_, next.kv_head, next_segments_);
  }
  const auto& segments = is_same_head ? segments_ : next_segments_;
  const auto segment = static_cast<size_t>(std::max(next.segment_idx, 0));
  if (VisibleSlots(segments[segment], 1) == 0) return nullptr;
  return KeysAt(segments[segment], owner_.shape_.head_dim, next.chunk_idx * kChunkSlots);
}

void Attention::Worker::RunChunk(const Task& task, const std::byte* prefetch,
                                 const RowResults& results) {
  const kv::Segment& segment = segments_[static_cast<size_t>(task.segment_idx)];
  const int begin = task.chunk_idx * kChunkSlots;
  const int n_slots = std::min(kChunkSlots, VisibleSlots(segment, TokenEnd(task)) - begin);
  for (int i = 0; i < task.n_rows; ++i) {
    const int n_tokens = (task.first_row + i) / owner_.shape_.Group() + 1;
    n_visible_[i] = std::clamp(VisibleSlots(segment, n_tokens) - begin, 0, n_slots);
  }
  kernels::SlotRun runs[kMaxChunkRuns];
  const int head_dim = owner_.shape_.head_dim;
  owner_.kernels_.attention[static_cast<size_t>(segment.format)].chunk(
      {.head_dim = head_dim,
       .n_rows = task.n_rows,
       .queries = PackQueries(task, segment),
       .runs = SliceSegment(segment, head_dim, begin, n_slots, runs),
       .n_visible = n_visible_,
       .prefetch = prefetch,
       .scratch = scratch_.data(),
       .max = results.max,
       .sum = results.sum,
       .out = results.out});
  if (!segment.is_rotated) return;
  for (int i = 0; i < task.n_rows; ++i) {
    kernels::Rotate(results.out + static_cast<size_t>(i) * static_cast<size_t>(head_dim), head_dim);
  }
}

// Every chunk of every segment, merged in order.
void Attention::Worker::WalkChunks(Task task) {
  const auto head_dim = static_cast<size_t>(owner_.shape_.head_dim);
  const auto n_rows = static_cast<size_t>(task.n_rows);
  const auto split = [](AlignedBuffer& buffer) -> RowResults {
    float* floats = buffer.As<float>();
    return {floats, floats + kMaxTaskRows, floats + 2 * kMaxTaskRows};
  };
  const RowResults chunk = split(chunk_results_);
  const RowResults rows = split(row_results_);
  std::fill_n(rows.max, n_rows, kNegInf);
  std::fill_n(rows.sum, n_rows, 0.0f);
  std::fill_n(rows.out, n_rows * head_dim, 0.0f);
  for (size_t s = 0; s < segments_.size(); ++s) {
    task.segment_idx = static_cast<int>(s);
    const int n_slots = VisibleSlots(segments_[s], TokenEnd(task));
    for (task.chunk_idx = 0; task.chunk_idx * kChunkSlots < n_slots; ++task.chunk_idx) {
      const int next_begin = (task.chunk_idx + 1) * kChunkSlots;
      const std::byte* prefetch =
          next_begin < n_slots ? KeysAt(segments_[s], owner_.shape_.head_dim, next_begin) : nullptr;
      RunChunk(task, prefetch, chunk);
      for (size_t i = 0; i < n_rows; ++i) {
        owner_.kernels_.merge(rows.max[i], rows.sum[i], rows.out + i * head_dim, chunk.max[i],
                              chunk.sum[i], chunk.out + i * head_dim, owner_.shape_.head_dim);
      }
    }
  }
  Finish(task, rows);
}

void Attention::Worker::Finish(const Task& task, const RowResults& results) {
  const HeadShape& shape = owner_.shape_;
  const auto head_dim = static_cast<size_t>(shape.head_dim);
  for (int i = 0; i < task.n_rows; ++i) {
    const int row = task.first_row + i;
    const auto token = static_cast<size_t>(GroupOf(task).first_row + row / shape.Group());
    const auto head = static_cast<size_t>(task.kv_head * shape.Group() + row % shape.Group());
    owner_.kernels_.finish(results.sum[i], results.out + static_cast<size_t>(i) * head_dim,
                           shape.head_dim,
                           out_ + (token * static_cast<size_t>(shape.n_heads) + head) * head_dim);
  }
}

void Attention::Worker::Run(std::span<const Task> tasks, size_t idx) {
  const Task& task = tasks[idx];
  FindSegments(task);
  if (task.segment_idx == Task::kAllSegments) {
    WalkChunks(task);
    return;
  }
  const size_t partial = task.first_partial;
  const size_t first_out = partial * static_cast<size_t>(owner_.shape_.head_dim);
  RunChunk(task, NextKeys(tasks, idx),
           {.max = owner_.partial_max_.As<float>() + partial,
            .sum = owner_.partial_sum_.As<float>() + partial,
            .out = owner_.partial_out_.As<float>() + first_out});
}

// ---- Attention ---------------------------------------------------------------------------------

Attention::Attention(const kernels::KernelTable& kernels, const HeadShape& shape, int n_members)
    : kernels_(kernels), shape_(shape), n_members_(n_members), shares_(n_members) {
  VC_CHECK(shape.n_heads % shape.n_kv_heads == 0 && shape.head_dim <= kernels::kMaxHeadDim,
           "{} heads, {} KV heads of {}", shape.n_heads, shape.n_kv_heads, shape.head_dim);
  for (int i = 0; i < n_members; ++i) workers_.push_back(std::make_unique<Worker>(*this));
}

Attention::~Attention() = default;

void Attention::BeginPass(std::span<const Group> groups, int n_layers) {
  groups_ = groups;
  has_partials_ = false;
  has_only_partials_ = true;
  std::vector<Cut> cuts;
  for (const Group& group : groups) {
    const int n_members = static_cast<int>(groups.size()) >= n_members_ ? 1 : n_members_;
    cuts.push_back(ChooseCut(group.n_rows * shape_.Group(), shape_.n_kv_heads, n_members));
    has_partials_ |= cuts.back().is_by_chunk;
    has_only_partials_ &= cuts.back().is_by_chunk;
  }
  size_t n_partials = 0;
  plans_.resize(static_cast<size_t>(n_layers));
  for (int layer = 0; layer < n_layers; ++layer) {
    LayerPlan& plan = plans_[static_cast<size_t>(layer)];
    PlanLayer(groups, cuts, shape_, layer, &plan);
    n_partials = std::max(n_partials, plan.n_partials);
  }
  partial_max_.Ensure(n_partials * sizeof(float));
  partial_sum_.Ensure(n_partials * sizeof(float));
  partial_out_.Ensure(n_partials * static_cast<size_t>(shape_.head_dim) * sizeof(float));
}

void Attention::DealLayer(int layer) {
  shares_.Reset(static_cast<int>(plans_[static_cast<size_t>(layer)].tasks.size()));
}

void Attention::RunTasks(Member& member, int layer, const float* q, float* out) {
  Worker& worker = *workers_[static_cast<size_t>(member.Index())];
  const std::span<const Task> tasks = plans_[static_cast<size_t>(layer)].tasks;
  worker.BeginLayer(layer, q, out);
  for (int idx; (idx = shares_.Next(member.Index())) >= 0;) {
    worker.Run(tasks, static_cast<size_t>(idx));
  }
}

void Attention::MergePartials(int layer, int head_begin, int head_end, float* out) const {
  const auto head_dim = static_cast<size_t>(shape_.head_dim);
  const auto* maxima = partial_max_.As<float>();
  const auto* sums = partial_sum_.As<float>();
  const auto* outs = partial_out_.As<float>();
  alignas(64) float merged[kernels::kMaxHeadDim];
  for (const PartialRows& rows : plans_[static_cast<size_t>(layer)].partial_rows) {
    const int first_token = groups_[static_cast<size_t>(rows.group_idx)].first_row;
    for (int i = 0; i < rows.n_rows; ++i) {
      const int row = rows.first_row + i;
      const int head = rows.kv_head * shape_.Group() + row % shape_.Group();
      if (head < head_begin || head >= head_end) continue;
      float max = kNegInf;
      float sum = 0.0f;
      std::fill_n(merged, head_dim, 0.0f);
      for (int c = 0; c < rows.n_chunks; ++c) {
        const size_t partial = rows.first_partial + static_cast<size_t>(c * rows.n_rows + i);
        kernels_.merge(max, sum, merged, maxima[partial], sums[partial], outs + partial * head_dim,
                       shape_.head_dim);
      }
      const auto token = static_cast<size_t>(first_token + row / shape_.Group());
      kernels_.finish(
          sum, merged, shape_.head_dim,
          out +
              (token * static_cast<size_t>(shape_.n_heads) + static_cast<size_t>(head)) * head_dim);
    }
  }
}

}  // namespace vericache::attend
