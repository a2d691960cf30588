// The definition of attention over one chunk, merge and finish: scalar, literal, slow. Every other
// path equals it bit for bit. Source: docs/numerics.md section 3, docs/kv_format.md.
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

const float* QueryRow(const QueryRows& rows, int i) {
  const int row = rows.first_row + i;
  return rows.q + static_cast<size_t>(row / rows.group) * rows.token_stride +
         static_cast<size_t>(row % rows.group) * static_cast<size_t>(rows.head_dim);
}

float Bias(const SlotPlace& place) {
  return place.run->log_weights != nullptr ? place.run->log_weights[place.slot] : 0.0f;
}

// ---- I16: numerics section 3 --------------------------------------------------------------------

struct I16 {
  static constexpr float kWeightMax = kWeightCodeMax;
  static constexpr float kWeightInverse = kWeightCodeInverse;

  // Packed queries: codes [n_rows][head_dim] i16, then dq [n_rows] f32.
  static size_t QueryBytes(int n_rows, int head_dim) {
    return static_cast<size_t>(n_rows) *
           (sizeof(int16_t) * static_cast<size_t>(head_dim) + sizeof(float));
  }

  static void PackQueries(const QueryRows& rows, std::byte* out) {
    auto* codes = reinterpret_cast<int16_t*>(out);
    auto* dq = reinterpret_cast<float*>(codes + static_cast<size_t>(rows.n_rows) *
                                                    static_cast<size_t>(rows.head_dim));
    for (int i = 0; i < rows.n_rows; ++i) {
      bool is_finite = true;  // the caller flags rows where it encodes the keys
      const float step =
          ref::EncodeKey(QueryRow(rows, i), rows.head_dim,
                         codes + static_cast<ptrdiff_t>(i) * rows.head_dim, &is_finite);
      dq[i] = step * ScoreScale(rows.head_dim);
    }
  }

  struct Query {
    const int16_t* codes;
    float dq;
  };
  static Query QueryOf(const AttentionTask& task, int row, SlotPlace /*group*/) {
    const auto* codes = reinterpret_cast<const int16_t*>(task.queries);
    const auto* dq =
        reinterpret_cast<const float*>(codes + static_cast<ptrdiff_t>(task.n_rows) * task.head_dim);
    return {codes + static_cast<ptrdiff_t>(row) * task.head_dim, dq[row]};
  }

  static float Score(const Query& query, int head_dim, SlotPlace place) {
    const auto* keys = reinterpret_cast<const int16_t*>(place.run->keys);
    uint32_t idot = 0;  // exact below 2^31; queries and keys of tiny norm wrap, as in every path
    for (int d = 0; d < head_dim; ++d) {
      idot += static_cast<uint32_t>(query.codes[d] * keys[KeyIndex(head_dim, place.slot, d)]);
    }
    const float u =
        static_cast<float>(static_cast<int32_t>(idot)) * place.run->key_scales[place.slot];
    return Fma(u, query.dq, Bias(place));
  }

  static float ValueScale(SlotPlace place) { return place.run->value_scales[place.slot]; }
  static float ValueMid(SlotPlace /*place*/) { return 0.0f; }
  static int ValueCode(int head_dim, SlotPlace place, int c) {
    return reinterpret_cast<const int16_t*>(place.run->values)[ValueIndex(head_dim, place.slot, c)];
  }
  // X of the 64 weights of a sub-block: bounds the sum of their codes.
  static float WeightRange(const float* p) {
    float range = 0.0f;
    for (int x = 0; x < kLanes; ++x) {
      const float lane = (p[x] + p[x + 16]) + (p[x + 32] + p[x + 48]);
      if (lane > range) range = lane;
    }
    return range;
  }
};

// ---- packed formats: docs/kv_format.md ----------------------------------------------------------
// With k = scale[d] * code + mid[d] per channel of a group of 64 slots, q . k is a dot of integer
// codes with q' = q * scale plus the number q . mid, both once per group. q' is quantised to 16
// bits for Q8 and to 8 bits for Q4 and Q2, the weights alike.

template <KvFormat kFormat>
struct Packed {
  static constexpr bool kIsQ8 = kFormat == KvFormat::kQ8;
  static constexpr float kQueryInverse = kIsQ8 ? kWideCodeInverse : kByteQueryInverse;
  static constexpr float kWeightMax = kIsQ8 ? kWideCodeMax : kByteWeightMax;
  static constexpr float kWeightInverse = kIsQ8 ? kWideCodeInverse : kByteWeightInverse;

  // Packed queries: q * fl(log2(e) / sqrt(head_dim)), [n_rows][head_dim] f32. A query whose I16
  // step is 0 counts as 0.
  static size_t QueryBytes(int n_rows, int head_dim) {
    return sizeof(float) * static_cast<size_t>(n_rows) * static_cast<size_t>(head_dim);
  }

  static void PackQueries(const QueryRows& rows, std::byte* out) {
    const float scale = ScoreScale(rows.head_dim);
    for (int i = 0; i < rows.n_rows; ++i) {
      const float* q = QueryRow(rows, i);
      float* scaled = reinterpret_cast<float*>(out) + static_cast<ptrdiff_t>(i) * rows.head_dim;
      int16_t codes[kMaxHeadDim];
      bool is_finite = true;
      const bool is_zero = ref::EncodeKey(q, rows.head_dim, codes, &is_finite) == 0.0f;
      for (int d = 0; d < rows.head_dim; ++d) {
        scaled[d] = is_zero || !IsFinite(q[d]) ? 0.0f : q[d] * scale;
      }
    }
  }

  // A query against one group of 64 slots.
  struct Query {
    int32_t codes[kMaxHeadDim];
    float step;
    float mid;
  };
  static Query QueryOf(const AttentionTask& task, int row, SlotPlace group) {
    const int head_dim = task.head_dim;
    const float* q =
        reinterpret_cast<const float*>(task.queries) + static_cast<ptrdiff_t>(row) * head_dim;
    const float* scales = group.run->key_scales;
    float folded[kMaxHeadDim];
    float max = 0.0f;
    float mid_lanes[kLanes] = {};
    for (int d = 0; d < head_dim; ++d) {
      folded[d] = q[d] * scales[KeyScaleIndex(head_dim, group.slot, d)];
      const float magnitude = BitsFloat(FloatBits(folded[d]) & 0x7fffffffu);
      max = magnitude > max ? magnitude : max;
      mid_lanes[d % kLanes] =
          Fma(q[d], scales[KeyMidIndex(head_dim, group.slot, d)], mid_lanes[d % kLanes]);
    }
    Query query;
    query.step = max * kQueryInverse > kTinyStep ? max * kQueryInverse : 0.0f;
    query.mid = TreeSum(mid_lanes);
    const float inverse = query.step > 0.0f ? 1.0f / query.step : 0.0f;
    for (int d = 0; d < head_dim; ++d) query.codes[d] = RoundCode(folded[d], inverse);
    return query;
  }

  static float Score(const Query& query, int head_dim, SlotPlace place) {
    int32_t idot = 0;  // below 32767 * 128 * 256
    for (int d = 0; d < head_dim; ++d) {
      idot += query.codes[d] *
              CenteredCode(kFormat, KeyPlace(kFormat, head_dim, place.slot, d), place.run->keys);
    }
    return Fma(static_cast<float>(idot), query.step, query.mid + Bias(place));
  }

  static float ValueScale(SlotPlace place) {
    return place.run->value_scales[ValueScaleIndex(place.slot)];
  }
  static float ValueMid(SlotPlace place) {
    return place.run->value_scales[ValueMidIndex(place.slot)];
  }
  static int ValueCode(int head_dim, SlotPlace place, int c) {
    return CenteredCode(kFormat, ValuePlace(kFormat, head_dim, place.slot, c), place.run->values);
  }
  static float WeightRange(const float* p) {
    float range = 0.0f;
    for (int x = 0; x < kSubBlockSlots; ++x) range = p[x] > range ? p[x] : range;
    return range;
  }
};

// ---- one chunk, any format ----------------------------------------------------------------------

size_t ScratchBytes(int /*n_rows*/, int /*head_dim*/) { return 0; }

// Scores of a row for the chunk's slots, -inf where invisible, padded to a multiple of 64.
// Returns the padded count.
template <class Format>
int ScoreRow(const AttentionTask& task, int row, float* scores) {
  const int n_slots = SlotCount(task);
  const int n_visible = VisibleCount(task, row);
  const int n_padded = (n_slots + kSubBlockSlots - 1) / kSubBlockSlots * kSubBlockSlots;
  for (int x = 0; x < n_padded; ++x) scores[x] = kNegInf;
  for (int b = 0; b < n_visible; b += kSubBlockSlots) {
    const auto query = Format::QueryOf(task, row, FindSlot(task, b));
    for (int x = b; x < n_visible && x < b + kSubBlockSlots; ++x) {
      scores[x] = Format::Score(query, task.head_dim, FindSlot(task, x));
    }
  }
  return n_padded;
}

template <class Format>
void ScoreRows(const AttentionTask& task, float* scores) {
  for (int row = 0; row < task.n_rows; ++row) {
    ScoreRow<Format>(task, row, scores + static_cast<ptrdiff_t>(row) * kChunkSlots);
  }
}

// out += the weights p of one sub-block times the codes of its values, by exact integers.
// Shapes: p [64], 0 where invisible.
template <class Format>
void AddWeightedCodes(const AttentionTask& task, int first_slot, const float* p, float* out) {
  const float range = Format::WeightRange(p);
  if (range < kTinyStep) return;
  const float scale = Format::kWeightMax / range;
  const float back = range * Format::kWeightInverse;
  int32_t acc[kMaxHeadDim] = {};
  for (int x = 0; x < kSubBlockSlots; ++x) {
    if (p[x] == 0.0f) continue;  // padding slots have no place
    const SlotPlace place = FindSlot(task, first_slot + x);
    const int32_t code = RoundCode(p[x], scale);
    for (int c = 0; c < task.head_dim; ++c) {
      acc[c] += code * Format::ValueCode(task.head_dim, place, c);
    }
  }
  for (int c = 0; c < task.head_dim; ++c) {
    out[c] = Fma(static_cast<float>(acc[c]), back, out[c]);
  }
}

template <class Format>
void ChunkRow(const AttentionTask& task, int row) {
  float scores[kChunkSlots];
  const int n_padded = ScoreRow<Format>(task, row, scores);
  float* out = task.out + static_cast<ptrdiff_t>(row) * task.head_dim;
  std::memset(out, 0, sizeof(float) * static_cast<size_t>(task.head_dim));
  task.sum[row] = 0.0f;
  float max = kNegInf;
  for (int x = 0; x < n_padded; ++x) max = scores[x] > max ? scores[x] : max;
  task.max[row] = max = max + 0.0f;  // a zero maximum is +0, whichever zero came first
  if (max == kNegInf) return;

  const int n_visible = VisibleCount(task, row);
  float p[kChunkSlots];
  float sum_lanes[kLanes] = {};
  float mid_lanes[kLanes] = {};
  for (int b = 0; b < n_padded; b += kSubBlockSlots) {
    float e[kSubBlockSlots];
    for (int x = 0; x < kSubBlockSlots; ++x) {
      e[x] = 0.0f;
      p[b + x] = 0.0f;
      if (b + x >= n_visible) continue;
      const SlotPlace place = FindSlot(task, b + x);
      e[x] = Exp2(scores[b + x] - max);
      p[b + x] = e[x] * Format::ValueScale(place);
      mid_lanes[x % kLanes] = Fma(e[x], Format::ValueMid(place), mid_lanes[x % kLanes]);
    }
    for (int x = 0; x < kLanes; ++x) {
      sum_lanes[x] = sum_lanes[x] + ((e[x] + e[x + 16]) + (e[x + 32] + e[x + 48]));
    }
  }
  task.sum[row] = TreeSum(sum_lanes);
  const float mid = TreeSum(mid_lanes);
  for (int c = 0; c < task.head_dim; ++c) out[c] = mid;
  for (int b = 0; b < n_padded; b += kSubBlockSlots) AddWeightedCodes<Format>(task, b, p + b, out);
}

template <class Format>
void ChunkRows(const AttentionTask& task) {
  for (int row = 0; row < task.n_rows; ++row) ChunkRow<Format>(task, row);
}

template <class Format>
constexpr AttentionKernels Table() {
  return {Format::QueryBytes, Format::PackQueries, ScratchBytes, ChunkRows<Format>,
          ScoreRows<Format>};
}

}  // namespace

namespace ref {

const AttentionKernels kAttention[kKvFormatCount] = {
    Table<I16>(),
    Table<Packed<KvFormat::kQ8>>(),
    Table<Packed<KvFormat::kQ4>>(),
    Table<Packed<KvFormat::kQ2>>(),
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
