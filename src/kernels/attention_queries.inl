// Queries as the key tiles read them: packed once per pass (I16), or folded with the channel scales
// of every group of 64 slots (packed formats).
#include "kernels/attention_tiles.inl"

namespace vericache::kernels {
namespace {

constexpr size_t RoundUpTo64(size_t n) { return (n + 63) / 64 * 64; }

// Queries of all rows, ready for the key tiles.
struct PackedQueries {
  QueryRow* rows;  // [rows]
  int32_t* words;  // [rows][kQueryPitch]

  PackedQueries(std::byte* memory, int n_rows) {
    rows = reinterpret_cast<QueryRow*>(memory);
    words = reinterpret_cast<int32_t*>(memory +
                                       RoundUpTo64(static_cast<size_t>(n_rows) * sizeof(QueryRow)));
  }
  static size_t Bytes(int n_rows) {
    return RoundUpTo64(static_cast<size_t>(n_rows) * sizeof(QueryRow)) +
           static_cast<size_t>(n_rows) * kQueryPitch * sizeof(int32_t);
  }
};

[[gnu::always_inline]] inline const float* QueryAt(const QueryRows& rows, int i) {
  const int row = rows.first_row + i;
  return rows.q + static_cast<size_t>(row / rows.group) * rows.token_stride +
         static_cast<size_t>(row % rows.group) * static_cast<size_t>(rows.head_dim);
}

// I16: codes. Packed formats: floats in log2 units, [n_rows][head_dim], which each group of slots
// folds its channel scales into.
template <class Codes>
size_t QueryBytes(int n_rows, int head_dim) {
  if constexpr (!Codes::kIsPacked) return PackedQueries::Bytes(n_rows);
  return sizeof(float) * static_cast<size_t>(n_rows) * static_cast<size_t>(head_dim);
}

template <class Codes>
void PackQueries(const QueryRows& rows, std::byte* out) {
  const float scale = ScoreScale(rows.head_dim);
  const PackedQueries queries(out, rows.n_rows);
  for (int i = 0; i < rows.n_rows; ++i) {
    const float* q = QueryAt(rows, i);
    alignas(64) int16_t codes[kMaxHeadDim];
    bool is_finite = true;
    const float step = EncodeQuery(q, rows.head_dim, codes, &is_finite);
    if constexpr (!Codes::kIsPacked) {
      queries.rows[i] = {step * scale, 0.0f, 0};
      __builtin_memcpy(queries.words + static_cast<ptrdiff_t>(i) * kQueryPitch, codes,
                       sizeof(int16_t) * static_cast<size_t>(rows.head_dim));
    } else {
      float* scaled = reinterpret_cast<float*>(out) + static_cast<ptrdiff_t>(i) * rows.head_dim;
      for (int d = 0; d < rows.head_dim; ++d) {
        scaled[d] = step == 0.0f || !IsFinite(q[d]) ? 0.0f : q[d] * scale;
      }
    }
  }
}

// Folds the channel scales of a group of slots into the queries and quantises them anew.
// Shapes: scales [2][head_dim] of the group.
template <class Codes>
void FoldQueries(const AttentionTask& task, const float* scales, const PackedQueries& out) {
  constexpr bool kIsBytes = Codes::kTermsPerWord == 4;
  const int head_dim = task.head_dim;
  const float* q = reinterpret_cast<const float*>(task.queries);
  const Float bias = V::Set(kRoundBias);
  for (int row = 0; row < task.n_rows; ++row, q += head_dim) {
    alignas(64) float folded[kMaxHeadDim];
    Float max = V::Set(0.0f);
    Float mids[kLaneVecs];
    Float totals[kLaneVecs];
    for (int g = 0; g < kLaneVecs; ++g) mids[g] = totals[g] = V::Set(0.0f);
    for (int d = 0; d < head_dim; d += kLanes) {
#pragma GCC unroll 2
      for (int g = 0; g < kLaneVecs; ++g) {
        const int at = d + g * kWidth;
        const Float x = V::Load(q + at);
        const Float y = V::Mul(x, V::Load(scales + at));
        mids[g] = V::Fma(x, V::Load(scales + head_dim + at), mids[g]);
        max = V::Max(max, V::Abs(y));
        V::Store(folded + at, y);
      }
    }
    const float wide_step = V::MaxLane(max) * (kIsBytes ? kByteQueryInverse : kWideCodeInverse);
    const float step = wide_step > kTinyStep ? wide_step : 0.0f;
    const Float inverse = V::Set(step > 0.0f ? 1.0f / step : 0.0f);
    int32_t* words = out.words + static_cast<ptrdiff_t>(row) * kQueryPitch;
    for (int d = 0; d < head_dim; d += kLanes) {
      Float codes[kLaneVecs];
#pragma GCC unroll 2
      for (int g = 0; g < kLaneVecs; ++g) {
        codes[g] = V::Fma(V::Load(folded + d + g * kWidth), inverse, bias);
        if constexpr (kIsBytes) totals[g] = V::Add(totals[g], V::Sub(codes[g], bias));  // exact
      }
      if constexpr (kIsBytes) {
        V::StoreLowBytes(words + d / 4, codes);
      } else {
        V::StoreLowWords(words + d / 2, codes);
      }
    }
    const auto total = static_cast<int32_t>(kIsBytes ? V::TreeSumLanes(totals) : 0.0f);
    out.rows[row] = {step, V::TreeSumLanes(mids), -CodeCenter(Codes::kFormat) * total};
  }
}

}  // namespace
}  // namespace vericache::kernels
