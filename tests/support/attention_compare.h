// Compares every available attention path with the reference, bit for bit, over row subsets of one
// chunk. Used by the fast and the slow tests of attention.
#pragma once

#include <gtest/gtest.h>

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
  for (const int n : shape.run_slots) runs += (runs.empty() ? "" : "+") + std::to_string(n);
  return "format " + std::to_string(static_cast<int>(shape.format)) + " head_dim " +
         std::to_string(shape.head_dim) + " slots " + runs + " bias " +
         std::to_string(shape.has_log_weights) + " visible " +
         std::to_string(static_cast<int>(pattern)) + " seed " + std::to_string(shape.seed);
}

inline void ExpectPathsEqualReference(const ChunkShape& shape, Visible pattern,
                                      const std::vector<int>& row_counts) {
  SCOPED_TRACE(Describe(shape, pattern));
  ChunkData data(shape);
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
