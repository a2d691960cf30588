// Goal: identity keeps every slot bit for bit, cut where softmax chunks are.
// Method: random sources against themselves.

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::AnyJob;
using testing_support::Compress;
using testing_support::HoldsSlots;
using testing_support::Make;
using testing_support::RandomJob;

PROPERTY(Identity, KeepsEverythingBitForBit, 10) {
  const RandomJob job(rng, AnyJob(rng));
  const int end = rng.In(0, job.Full().Length());
  const kv::PackedKv packed = Compress("identity", job.At(end));
  std::vector<int> all(static_cast<size_t>(end));
  std::iota(all.begin(), all.end(), 0);
  const kv::KvShape& shape = packed.Shape();
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    for (int head = 0; head < shape.n_kv_heads; ++head) {
      EXPECT_TRUE(HoldsSlots(packed, job.Full(), {layer, head}, all));
    }
  }
  EXPECT_EQ(packed.Bytes(), kv::FullKvBytesPerToken(shape) * static_cast<size_t>(end));
}

TEST(Identity, EndsItsBodyAtAWholeChunk) {
  EXPECT_TRUE(Make("identity")->GetTraits().is_exact);
  EXPECT_EQ(Make("identity")->GetTraits().body_grain, kernels::kChunkSlots);
}

}  // namespace
}  // namespace vericache::compress
