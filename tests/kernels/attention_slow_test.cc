// The whole sweep of attention: every path against the reference in every bit.
//
// Goal: no shape, row count, cut into runs or pattern of visibility has bits of its own.
// Method: as attention_test.cc, over the full product.
#include <gtest/gtest.h>

#include "tests/support/attention_compare.h"

namespace vericache::kernels {
namespace {

using testing_support::Data;
using testing_support::ExpectPathsEqualReference;
using testing_support::Visible;

class AttentionSweep : public ::testing::TestWithParam<KvFormat> {};

TEST_P(AttentionSweep, EqualsTheReferenceInEveryBit) {
  uint32_t seed = 1000;
  for (const int head_dim : {16, 32, 48, 64, 80, 96, 112, 128, 192, 256}) {
    for (const int n_slots : {1, 15, 16, 63, 64, 65, 255, 256, 257, 511, 512}) {
      for (const Visible pattern : testing_support::kVisiblePatterns) {
        ++seed;
        ExpectPathsEqualReference({.format = GetParam(),
                                   .head_dim = head_dim,
                                   .group = 1 + static_cast<int>(seed % 7),
                                   .n_rows = 96,
                                   .run_slots = testing_support::RunsOf(n_slots, seed / 4),
                                   .has_log_weights = seed / 4 % 2 == 1,
                                   .seed = seed},
                                  pattern, {1, 2, 3, 5, 6, 7, 16, 17, 41, 64, 96});
      }
    }
  }
}

TEST_P(AttentionSweep, EqualsTheReferenceForEveryCutIntoRuns) {
  for (const std::vector<int>& runs :
       std::vector<std::vector<int>>{{512},
                                     {256, 256},
                                     {64, 448},
                                     {448, 64},
                                     {256, 255},
                                     {64, 64, 64, 1},
                                     {64, 64, 64, 64, 64, 64, 64, 64},
                                     {128, 1},
                                     {320, 100}}) {
    for (const int head_dim : {64, 128}) {
      ExpectPathsEqualReference({.format = GetParam(),
                                 .head_dim = head_dim,
                                 .group = 7,
                                 .n_rows = 42,
                                 .run_slots = runs,
                                 .has_log_weights = runs.size() % 2 == 0,
                                 .seed = 77},
                                Visible::kStaircase, {1, 7, 14, 42});
    }
  }
}

TEST_P(AttentionSweep, EqualsTheReferenceAtTheEdgesOfTheArithmetic) {
  for (const Data kind : {Data::kParallel, Data::kTiny, Data::kZeros, Data::kHuge}) {
    for (const int head_dim : {16, 48, 64, 128, 256}) {
      for (const bool has_log_weights : {false, true}) {
        ExpectPathsEqualReference({.format = GetParam(),
                                   .head_dim = head_dim,
                                   .group = 2,
                                   .n_rows = 16,
                                   .run_slots = {256, 256},
                                   .has_log_weights = has_log_weights,
                                   .seed = 6},
                                  Visible::kRandom, {1, 4, 16}, kind);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, AttentionSweep,
                         ::testing::Values(KvFormat::kI16, KvFormat::kQ8, KvFormat::kQ4,
                                           KvFormat::kQ2));

}  // namespace
}  // namespace vericache::kernels
