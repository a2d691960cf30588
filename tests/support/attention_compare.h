// Compares every available attention path with the reference, bit for bit, over row subsets of one
// chunk. Used by the fast and the slow tests of attention.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/support/attention_data.h"

namespace vericache::testing_support {

enum class Visible { kAll, kStaircase, kRandom, kSomeNothing };
inline constexpr Visible kVisiblePatterns[] = {Visible::kAll, Visible::kStaircase, Visible::kRandom,
                                               Visible::kSomeNothing};

inline void SetPattern(ChunkData& data, Visible pattern) {
  const int n_slots = data.SlotCount();
  const int group = data.shape().group;
  const int n_tokens = (data.shape().n_rows + group - 1) / group;
  std::mt19937 rng(data.shape().seed + 77);
  data.SetVisible([&](int row) {
    const int random = static_cast<int>(rng() % static_cast<uint32_t>(n_slots + 1));
    switch (pattern) {
      case Visible::kAll:
        return n_slots + (row % 3 == 0 ? 100 : 0);  // may reach past the chunk
      case Visible::kStaircase:
        return std::max(0, n_slots - n_tokens + 1 + row / group);
      case Visible::kRandom:
        return random;
      case Visible::kSomeNothing:
        return row % 2 == 0 ? 0 : random;
    }
    return 0;
  });
}

// Data at the edges of the arithmetic.
enum class Data {
  kNormal,
  kParallel,  // every key and value parallel to the queries: largest sums of codes
  kTiny,      // steps just above the smallest: products underflow, some to -0
  kZeros,     // no key, no value, every third query 0
  kHuge,      // up to 1e15
};

inline void Reshape(ChunkData& data, Data kind) {
  if (kind == Data::kNormal) return;
  const ChunkShape& shape = data.shape();
  std::mt19937 rng(shape.seed + 5);
  const auto reshape = [&](float* x, bool is_query, int index) {
    for (int d = 0; d < shape.head_dim; ++d) {
      const float sign = (d * 7 / 3) % 2 == 0 ? 1.0f : -1.0f;
      if (kind == Data::kParallel) {
        x[d] = sign * (index % 5 == 0 && !is_query ? -2.0f : 2.0f);
      } else if (kind == Data::kTiny) {
        x[d] = (rng() % 2 == 0 ? 1.0f : -1.0f) * 0x1p-75f * static_cast<float>(1 + rng() % 3);
      } else if (kind == Data::kHuge) {
        x[d] *= is_query ? 1e3f : 1e12f;
      } else if (!is_query || index % 3 == 0) {
        x[d] = 0.0f;
      }
    }
  };
  const int n_queries = (shape.n_rows + shape.group - 1) / shape.group * shape.group;
  for (int row = 0; row < n_queries; ++row) reshape(data.mutable_query(row), true, row);
  for (int slot = 0; slot < data.SlotCount(); ++slot) {
    reshape(data.mutable_key(slot), false, slot);
    reshape(data.mutable_value(slot), false, slot);
  }
  data.Encode();
}

// A few ways to cut n slots into runs whose lengths, but for the last, are multiples of 64.
inline std::vector<int> RunsOf(int n_slots, uint32_t seed) {
  const int sub_blocks = (n_slots - 1) / 64;
  if (sub_blocks == 0 || seed % 3 == 0) return {n_slots};
  const int cut = seed % 3 == 1 ? (sub_blocks + 1) / 2 * 64 : 64;
  if (seed % 2 == 0 && n_slots - cut > 128) return {cut, 64, n_slots - cut - 64};
  return {cut, n_slots - cut};
}

// First row and count of the subsets of n_rows rows that a path is run on.
struct RowRange {
  int first;
  int count;
};

inline std::vector<RowRange> RowSubsets(int n_rows, const std::vector<int>& counts) {
  std::vector<RowRange> subsets;
  for (const int count : counts) {
    if (count > n_rows) continue;
    subsets.push_back({n_rows - count, count});
    if (count < n_rows) subsets.push_back({(n_rows - count) / 2, count});
  }
  return subsets;
}

inline bool SameBits(const float* a, const float* b, size_t n) {
  return std::memcmp(a, b, n * sizeof(float)) == 0;
}

// The rows of `part` equal rows [first, first + count) of `whole` in every bit.
inline ::testing::AssertionResult EqualRows(const ChunkResult& whole, const ChunkResult& part,
                                            RowRange range, const ChunkShape& shape) {
  int n_slots = 0;
  for (const int n : shape.run_slots) n_slots += n;
  const auto padded = static_cast<size_t>((n_slots + 63) / 64 * 64);
  const auto head_dim = static_cast<size_t>(shape.head_dim);
  for (int i = 0; i < range.count; ++i) {
    const auto row = static_cast<size_t>(range.first + i);
    const auto own = static_cast<size_t>(i);
    const auto failure = [&](const char* what) {
      return ::testing::AssertionFailure() << what << " of row " << row << " differs";
    };
    if (!SameBits(&whole.scores[row * 512], &part.scores[own * 512], padded)) {
      return failure("scores");
    }
    if (!SameBits(&whole.max[row], &part.max[own], 1)) return failure("max");
    if (!SameBits(&whole.sum[row], &part.sum[own], 1)) return failure("sum");
    if (!SameBits(&whole.out[row * head_dim], &part.out[own * head_dim], head_dim)) {
      return failure("out");
    }
  }
  return ::testing::AssertionSuccess();
}

inline std::string Describe(const ChunkShape& shape, Visible pattern) {
  std::string runs;
  for (const int n : shape.run_slots) {
    if (!runs.empty()) runs += '+';
    runs += std::to_string(n);
  }
  return "format " + std::to_string(static_cast<int>(shape.format)) + " head_dim " +
         std::to_string(shape.head_dim) + " slots " + runs + " bias " +
         std::to_string(shape.has_log_weights) + " visible " +
         std::to_string(static_cast<int>(pattern)) + " seed " + std::to_string(shape.seed);
}

// The reference runs all rows at once, a path every subset: equality also shows that a row does not
// depend on which other rows share the pass.
inline void ExpectPathsEqualReference(const ChunkShape& shape, Visible pattern,
                                      const std::vector<int>& row_counts,
                                      Data kind = Data::kNormal) {
  SCOPED_TRACE(Describe(shape, pattern) + " data " + std::to_string(static_cast<int>(kind)));
  ChunkData data(shape);
  Reshape(data, kind);
  SetPattern(data, pattern);
  const ChunkResult reference = RunChunk(kernels::RefKernels(), data, 0, shape.n_rows);
  for (const kernels::KernelTable* path : kernels::AvailableKernels()) {
    for (const RowRange range : RowSubsets(shape.n_rows, row_counts)) {
      if (path->isa == kernels::Isa::kRef && range.count > 3) continue;
      const ChunkResult result = RunChunk(*path, data, range.first, range.count);
      ASSERT_TRUE(EqualRows(reference, result, range, shape))
          << path->name << " with " << range.count << " rows from " << range.first;
    }
  }
}

}  // namespace vericache::testing_support
