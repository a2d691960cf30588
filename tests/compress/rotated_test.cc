// Goal: rotated keeps every slot, in kivi's bytes, and a body of it reads and attends as what it
// came from, nearer than kivi where a channel stands out.
// Method: random sources, one with outlier channels; errors of what is read back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::Make;
using testing_support::RandomJob;
using testing_support::SlotsOf;

constexpr kv::KvShape kShape{.n_layers = 2, .n_kv_heads = 2, .head_dim = 64};

// Of the values read back, against their size.
double ValueError(const kv::HeadSlots& a, const kv::HeadSlots& b) {
  double error = 0.0;
  double norm = 0.0;
  std::vector<float> x(static_cast<size_t>(a.head_dim));
  std::vector<float> y(x.size());
  for (int slot = 0; slot < a.Count(); ++slot) {
    a.Value(slot, x.data());
    b.Value(slot, y.data());
    for (size_t dim = 0; dim < x.size(); ++dim) {
      error += (x[dim] - y[dim]) * (x[dim] - y[dim]);
      norm += x[dim] * x[dim];
    }
  }
  return std::sqrt(error / norm);
}

TEST(Rotated, KeepsEverySlotInTheBytesOfKivi) {
  testing_support::Rng rng(1);
  const RandomJob job(rng, {.kv = {.shape = kShape, .n_tokens = 300}});
  const kv::HeadSlots exact = SlotsOf(job.Full(), 1, 1, 300);
  for (const auto& [bits, error] : {std::pair{8, 0.008}, std::pair{4, 0.12}, std::pair{2, 0.6}}) {
    const kv::PackedKv packed = Compress(fmt::format("rotated:bits={}", bits), job.All(), 2);
    EXPECT_TRUE(packed.Head(1, 1).is_rotated);
    EXPECT_EQ(packed.Bytes(), Compress(fmt::format("kivi:bits={}", bits), job.All()).Bytes());
    const kv::HeadSlots read = SlotsOf(packed, 1, 1, 300);
    EXPECT_EQ(read.positions, exact.positions);
    EXPECT_LT(ValueError(exact, read), error) << bits;
  }
}

TEST(Rotated, IsNearerThanKiviWhereAChannelStandsOut) {
  testing_support::Rng rng(2);
  testing_support::RandomKv source(rng, {.shape = {.n_layers = 1, .n_kv_heads = 1, .head_dim = 64}},
                                   128);
  ASSERT_TRUE(source->Reserve(128).has_value());
  std::vector<float> x(64);
  for (int row = 0; row < 128; ++row) {
    for (float& dim : x) dim = rng.Normal();
    x[5] *= 20.0f;
    testing_support::WriteRow(source->NewRow(0, 0, row), x, x);
  }
  source->Commit(128);
  const Job job{.source = &*source, .end = Position{128}};
  const kv::HeadSlots exact = SlotsOf(*source, 0, 0, 128);
  EXPECT_LT(ValueError(exact, SlotsOf(Compress("rotated", job), 0, 0, 128)),
            0.7 * ValueError(exact, SlotsOf(Compress("kivi", job), 0, 0, 128)));
}

TEST(Rotated, RefusesHeadsItCannotPack) {
  testing_support::Rng rng(3);
  const RandomJob job(
      rng, {.kv = {.shape = {.n_layers = 1, .n_kv_heads = 1, .head_dim = 24}, .n_tokens = 10}});
  ThreadTeam team(1);
  const auto refused = Make("rotated:bits=2")->Compress(job.All(), team);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("heads of 24 dims"));
}

}  // namespace
}  // namespace vericache::compress
