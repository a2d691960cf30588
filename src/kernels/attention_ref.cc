// The definition of attention over one chunk, merge and finish: scalar, literal, slow. Every other
// path equals it bit for bit. Source: docs/numerics.md section 3.
//
// The chunk's result for a row depends on that row, its n_visible and the slots below it alone.
// What lies in padding slots, or in slots a row does not see, is never read into a result.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/kv_layout.h"
#include "kernels/numerics.h"
#include "kernels/paths.h"

namespace vericache::kernels {
namespace {

constexpr float kNegInf = -std::numeric_limits<float>::infinity();

// Where a slot of the chunk lies.
struct SlotPlace {
  const SlotRun* run;
  int slot;  // within the run
};

SlotPlace FindSlot(const AttentionTask& task, int chunk_slot) {
  const SlotRun* run = task.runs.data();
  while (chunk_slot >= run->n_slots) chunk_slot -= (run++)->n_slots;
  return {run, chunk_slot};
}

int SlotCount(const AttentionTask& task) {
  int n_slots = 0;
  for (const SlotRun& run : task.runs) n_slots += run.n_slots;
  return n_slots;
}

int VisibleCount(const AttentionTask& task, int row) {
  const int n_slots = SlotCount(task);
  return task.n_visible[row] < n_slots ? task.n_visible[row] : n_slots;
}

// ---- I16 ---------------------------------------------------------------------------------------

// Packed queries: codes [n_rows][head_dim] i16, then dq [n_rows] f32.
size_t QueryBytes(int n_rows, int head_dim) {
  return static_cast<size_t>(n_rows) *
         (sizeof(int16_t) * static_cast<size_t>(head_dim) + sizeof(float));
}

void PackQueries(const QueryRows& rows, std::byte* out) {
  auto* codes = reinterpret_cast<int16_t*>(out);
  auto* dq = reinterpret_cast<float*>(codes + static_cast<size_t>(rows.n_rows) *
                                                  static_cast<size_t>(rows.head_dim));
  for (int i = 0; i < rows.n_rows; ++i) {
    const int row = rows.first_row + i;
    const float* q = rows.q + static_cast<size_t>(row / rows.group) * rows.token_stride +
                     static_cast<size_t>(row % rows.group) * static_cast<size_t>(rows.head_dim);
    bool is_finite = true;  // the caller flags rows where it encodes the keys
    const float step = ref::EncodeKey(
        q, rows.head_dim, codes + static_cast<ptrdiff_t>(i) * rows.head_dim, &is_finite);
    dq[i] = step * ScoreScale(rows.head_dim);
  }
}

float ScoreI16(const AttentionTask& task, int row, SlotPlace place) {
  const SlotRun& run = *place.run;
  const auto* codes = reinterpret_cast<const int16_t*>(task.queries);
  const auto* keys = reinterpret_cast<const int16_t*>(run.keys);
  const float dq = reinterpret_cast<const float*>(codes + static_cast<ptrdiff_t>(task.n_rows) *
                                                              task.head_dim)[row];
  uint32_t idot = 0;  // exact below 2^31; queries and keys of tiny norm wrap, as in every path
  for (int d = 0; d < task.head_dim; ++d) {
    idot += static_cast<uint32_t>(codes[static_cast<ptrdiff_t>(row) * task.head_dim + d] *
                                  keys[KeyIndex(task.head_dim, place.slot, d)]);
  }
  const float bias = run.log_weights != nullptr ? run.log_weights[place.slot] : 0.0f;
  return Fma(static_cast<float>(static_cast<int32_t>(idot)) * run.key_scales[place.slot], dq, bias);
}

// Scores of a row for the chunk's slots, -inf where invisible, padded to a multiple of 64.
// Returns the padded count.
int ScoreRow(const AttentionTask& task, int row, float* scores) {
  const int n_slots = SlotCount(task);
  const int n_visible = VisibleCount(task, row);
  const int n_padded = (n_slots + kSubBlockSlots - 1) / kSubBlockSlots * kSubBlockSlots;
  for (int x = 0; x < n_padded; ++x) {
    scores[x] = x < n_visible ? ScoreI16(task, row, FindSlot(task, x)) : kNegInf;
  }
  return n_padded;
}

// out += (weights p of one sub-block) times its values, by exact integers.
// Shapes: p [64], 0 where invisible.
void AddWeightedValuesI16(const AttentionTask& task, int first_slot, const float* p, float* out) {
  float x_max = 0.0f;
  for (int x = 0; x < kLanes; ++x) {
    const float lane = (p[x] + p[x + 16]) + (p[x + 32] + p[x + 48]);
    if (lane > x_max) x_max = lane;
  }
  if (x_max < kTinyStep) return;
  const float scale = kWeightCodeMax / x_max;
  const float back = x_max * kWeightCodeInverse;
  int32_t acc[kMaxHeadDim] = {};
  for (int x = 0; x < kSubBlockSlots; ++x) {
    if (p[x] == 0.0f) continue;  // padding slots have no place
    const SlotPlace place = FindSlot(task, first_slot + x);
    const auto* values = reinterpret_cast<const int16_t*>(place.run->values);
    const int32_t code = RoundCode(p[x], scale);
    for (int c = 0; c < task.head_dim; ++c) {
      acc[c] += code * values[ValueIndex(task.head_dim, place.slot, c)];
    }
  }
  for (int c = 0; c < task.head_dim; ++c) {
    out[c] = Fma(static_cast<float>(acc[c]), back, out[c]);
  }
}

void ChunkRowI16(const AttentionTask& task, int row) {
  float scores[kChunkSlots];
  const int n_padded = ScoreRow(task, row, scores);
  float* out = task.out + static_cast<ptrdiff_t>(row) * task.head_dim;
  std::memset(out, 0, sizeof(float) * static_cast<size_t>(task.head_dim));
  task.sum[row] = 0.0f;
  float max = kNegInf;
  for (int x = 0; x < n_padded; ++x) max = scores[x] > max ? scores[x] : max;
  task.max[row] = max = max + 0.0f;  // a zero maximum is +0, whichever zero came first
  if (max == kNegInf) return;

  const int n_visible = VisibleCount(task, row);
  float sum_lanes[kLanes] = {};
  for (int b = 0; b < n_padded; b += kSubBlockSlots) {
    float e[kSubBlockSlots];
    float p[kSubBlockSlots];
    for (int x = 0; x < kSubBlockSlots; ++x) {
      const bool is_visible = b + x < n_visible;
      e[x] = is_visible ? Exp2(scores[b + x] - max) : 0.0f;
      const SlotPlace place = is_visible ? FindSlot(task, b + x) : SlotPlace{};
      p[x] = is_visible ? e[x] * place.run->value_scales[place.slot] : 0.0f;
    }
    for (int x = 0; x < kLanes; ++x) {
      sum_lanes[x] = sum_lanes[x] + ((e[x] + e[x + 16]) + (e[x + 32] + e[x + 48]));
    }
    AddWeightedValuesI16(task, b, p, out);
  }
  task.sum[row] = TreeSum(sum_lanes);
}

// ---- the table
// -----------------------------------------------------------------------------------

size_t ScratchBytes(int /*n_rows*/, int /*head_dim*/) { return 0; }

void ChunkI16(const AttentionTask& task) {
  for (int row = 0; row < task.n_rows; ++row) ChunkRowI16(task, row);
}

void ScoresI16(const AttentionTask& task, float* scores) {
  for (int row = 0; row < task.n_rows; ++row) {
    ScoreRow(task, row, scores + static_cast<ptrdiff_t>(row) * kChunkSlots);
  }
}

}  // namespace

namespace ref {

const AttentionKernels kAttention[kKvFormatCount] = {
    {QueryBytes, PackQueries, ScratchBytes, ChunkI16, ScoresI16},
};

void Merge(float& max, float& sum, float* out, float chunk_max, float chunk_sum,
           const float* chunk_out, int head_dim) {
  if (chunk_max == kNegInf) return;
  const float new_max = chunk_max > max ? chunk_max : max;
  const float a = Exp2(max - new_max);
  const float b = Exp2(chunk_max - new_max);
  max = new_max;
  sum = Fma(sum, a, chunk_sum * b);
  for (int c = 0; c < head_dim; ++c) out[c] = Fma(out[c], a, chunk_out[c] * b);
}

void Finish(float sum, const float* out, int head_dim, float* result) {
  const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
  for (int c = 0; c < head_dim; ++c) result[c] = out[c] * inverse;
}

}  // namespace ref
}  // namespace vericache::kernels
