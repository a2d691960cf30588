// Goal: rotated keeps every slot, in kivi's bytes; keys and values read, and keys are scored by
// queries, as what they came from; values are nearer than kivi's where a channel stands out. What
// attention makes of such a body is tests/attend/attention_test.cc's.
// Method: random sources, one with outlier channels; errors of what is read back, and of the
// probabilities of window queries over the body.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "compress/window_scores.h"
#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::RandomJob;
using testing_support::SlotsOf;

constexpr kv::KvShape kShape{.n_layers = 2, .n_kv_heads = 2, .head_dim = 64};

// Of the keys or values read back, against their size.
double ErrorOf(const kv::HeadSlots& a, const kv::HeadSlots& b,
               void (kv::HeadSlots::*read)(int, float*) const) {
  double error = 0.0;
  double norm = 0.0;
  std::vector<float> x(static_cast<size_t>(a.head_dim));
  std::vector<float> y(x.size());
  for (int slot = 0; slot < a.Count(); ++slot) {
    (a.*read)(slot, x.data());
    (b.*read)(slot, y.data());
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
    EXPECT_LT(ErrorOf(exact, read, &kv::HeadSlots::Key), error) << bits;
    EXPECT_LT(ErrorOf(exact, read, &kv::HeadSlots::Value), error) << bits;
  }
}

// Queries meet rotated keys rotated: their probabilities stay near those over the exact keys.
TEST(Rotated, QueriesScoreItsKeysAsTheExactOnes) {
  testing_support::Rng rng(4);
  const RandomJob random(rng, {.kv = {.shape = kShape, .n_tokens = 300}, .group = 2});
  const WindowJob window{.layer = 1, .head = 1, .n_queries = 16};
  const std::vector<float> exact = WindowScores(random.All(), window);
  const double mass = std::accumulate(exact.begin(), exact.end(), 0.0);
  for (const auto& [bits, error] : {std::pair{8, 0.01}, std::pair{4, 0.15}}) {
    const kv::PackedKv packed = Compress(fmt::format("rotated:bits={}", bits), random.All());
    Job job = random.All();
    job.source = &packed;
    const std::vector<float> read = WindowScores(job, window);
    ASSERT_EQ(read.size(), exact.size());
    double apart = 0.0;
    for (size_t slot = 0; slot < exact.size(); ++slot) apart += std::abs(read[slot] - exact[slot]);
    EXPECT_LT(apart / mass, error) << bits;
  }
}

TEST(Rotated, ItsValuesAreNearerThanThoseOfKiviWhereAChannelStandsOut) {
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
  const auto error_of = [&](const char* spec) {
    return ErrorOf(exact, SlotsOf(Compress(spec, job), 0, 0, 128), &kv::HeadSlots::Value);
  };
  EXPECT_LT(error_of("rotated"), 0.7 * error_of("kivi"));
}

}  // namespace
}  // namespace vericache::compress
