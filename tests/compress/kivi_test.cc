// Goal: KIVI keeps every slot in the format asked for, in a fraction of the bytes, as near as its
// steps allow.
// Method: random sources; sizes and errors by the definition (tests/kv/packed_run_test.cc has
// the bounds per group).

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::KvContent;
using testing_support::RandomJob;
using testing_support::SlotsOf;

constexpr kv::KvShape kShape{.n_layers = 2, .n_kv_heads = 2, .head_dim = 64};

double RelativeError(const kv::HeadSlots& a, const kv::HeadSlots& b) {
  double error = 0.0;
  double norm = 0.0;
  std::vector<float> x(static_cast<size_t>(a.head_dim));
  std::vector<float> y(x.size());
  for (int slot = 0; slot < a.Count(); ++slot) {
    for (const bool is_key : {true, false}) {
      is_key ? a.Key(slot, x.data()) : a.Value(slot, x.data());
      is_key ? b.Key(slot, y.data()) : b.Value(slot, y.data());
      for (size_t dim = 0; dim < x.size(); ++dim) {
        error += (x[dim] - y[dim]) * (x[dim] - y[dim]);
        norm += x[dim] * x[dim];
      }
    }
  }
  return std::sqrt(error / norm);
}

TEST(Kivi, KeepsEverySlotInFewerBits) {
  testing_support::Rng rng(1);
  const RandomJob job(rng, {.kv = {.shape = kShape, .n_tokens = 512}});
  const kv::HeadSlots exact = SlotsOf(job.Full(), 1, 1, 512);
  const auto full_bytes = static_cast<double>(job.Full().TokenBytes());
  struct Case {
    int bits;
    kernels::KvFormat format;
    double error;
    double share;
  };
  // Normal values: half a step is (max - min) / (2 * (2^bits - 1)), about 5 / (2^bits - 1) sigma,
  // and the error is evenly spread below it.
  for (const Case& c :
       {Case{8, kernels::KvFormat::kQ8, 0.008, 0.56}, Case{4, kernels::KvFormat::kQ4, 0.12, 0.32},
        Case{2, kernels::KvFormat::kQ2, 0.6, 0.20}}) {
    const kv::PackedKv packed = Compress(fmt::format("kivi:bits={}", c.bits), job.All(), 2);
    EXPECT_EQ(packed.Head(1, 1).format, c.format);
    const kv::HeadSlots read = SlotsOf(packed, 1, 1, 512);
    EXPECT_EQ(read.positions, exact.positions);
    EXPECT_EQ(read.degrees, exact.degrees);
    const double error = RelativeError(exact, read);
    EXPECT_LT(error, c.error) << c.bits;
    EXPECT_GT(error, c.error / 10) << c.bits;
    EXPECT_LT(static_cast<double>(packed.Bytes()) / full_bytes, c.share) << c.bits;
  }
}

TEST(Kivi, PacksWhatAnEarlierStageMerged) {
  testing_support::Rng rng(2);
  const RandomJob job(rng,
                      {.kv = {.shape = kShape, .n_tokens = 512, .content = KvContent::kSmooth}});
  const kv::PackedKv merged = Compress("centroid:keep=0.5", job.All());
  const kv::PackedKv packed = Compress("centroid:keep=0.5+kivi:bits=8", job.All());
  EXPECT_EQ(packed.Head(0, 0).format, kernels::KvFormat::kQ8);
  EXPECT_EQ(packed.Head(0, 0).degrees, merged.Head(0, 0).degrees);
  EXPECT_EQ(packed.Head(0, 0).positions, merged.Head(0, 0).positions);
  EXPECT_LT(RelativeError(SlotsOf(merged, 0, 0, 512), SlotsOf(packed, 0, 0, 512)), 0.01);
}

}  // namespace
}  // namespace vericache::compress
