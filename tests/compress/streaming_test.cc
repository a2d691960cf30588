// Goal: StreamingLLM keeps sinks and newest tokens, in order, bit for bit, and nothing else.
// Method: random sources of awkward geometry; the kept slots are computed here by the
// definition.

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::AnyJob;
using testing_support::Compress;
using testing_support::HoldsSlots;
using testing_support::RandomJob;

// Slots of [0, n) that are among the first n_sinks or the last (n_kept - n_sinks).
std::vector<int> ByDefinition(int n, int n_kept, int n_sinks) {
  std::vector<int> kept;
  for (int slot = 0; slot < n; ++slot) {
    if (slot < n_sinks || slot >= n - (n_kept - n_sinks)) kept.push_back(slot);
  }
  return kept;
}

PROPERTY(Streaming, KeepsFirstAndLastAndDropsTheMiddle, 20) {
  const RandomJob job(rng, AnyJob(rng));
  const int end = rng.In(0, job.Full().Length());
  const int n_sinks = rng.OneOf({0, 1, 4, 50});
  const double keep = rng.OneOf({0.01, 0.25, 0.5, 0.9, 1.0});
  const kv::PackedKv packed =
      Compress(fmt::format("streaming:keep={},sinks={}", keep, n_sinks), job.At(end));
  const int n_protected = std::min(end, n_sinks);
  const int n_kept = std::max(n_protected, static_cast<int>(keep * end));
  for (int head = 0; head < packed.Shape().n_kv_heads; ++head) {
    const auto expected = ByDefinition(end, n_kept, n_protected);
    ASSERT_EQ(static_cast<int>(expected.size()), n_kept);
    EXPECT_TRUE(HoldsSlots(packed, job.Full(), {0, head}, expected));
  }
}

TEST(Streaming, CopiesEverythingWhenItFits) {
  testing_support::Rng rng(1);
  const RandomJob job(rng, {.kv = {.n_tokens = 10}});
  EXPECT_EQ(Compress("streaming:keep=1", job.All()).Head(0, 0).n_slots, 10);
}

}  // namespace
}  // namespace vericache::compress
