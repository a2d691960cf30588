// Goal: D2O keeps what H2O keeps, and lets only the more similar half of the rest join.
// Method: an example that can be followed by hand; the blend on random tensors is golden_test's.

#include <gtest/gtest.h>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::RandomJob;
using testing_support::SlotsOf;

PROPERTY(D2o, KeepsTheTokensOfH2o, 10) {
  auto options = testing_support::AnyJob(rng);
  options.kv.n_tokens = rng.In(2, 300);
  const RandomJob random(rng, options);
  const auto kept = Compress("h2o:keep=0.4,recent=0.3,window=9", random.All());
  const auto joined = Compress("d2o:keep=0.4,recent=0.3,window=9", random.All());
  for (int head = 0; head < options.kv.shape.n_kv_heads; ++head) {
    ASSERT_EQ(joined.Head(0, head).positions, kept.Head(0, head).positions);
  }
}

// Four keys; the last two are kept. The first is that of the last, the second is at 60 degrees to
// it: the mean cosine is .75, so the first joins with equal weight and the second is lost.
TEST(D2o, LetsJoinWhatIsMoreSimilarThanTheMean) {
  testing_support::Rng rng(1);
  testing_support::RandomKv source(rng, {.shape = {.n_layers = 1, .n_kv_heads = 1, .head_dim = 2}},
                                   4);
  ASSERT_TRUE(source->Reserve(4).has_value());
  const std::vector<std::vector<float>> keys = {{1, 0}, {0.5f, 0.8660254f}, {-1, 0}, {1, 0}};
  const std::vector<std::vector<float>> values = {{3, 1}, {9, 9}, {0, 2}, {1, 1}};
  for (int i = 0; i < 4; ++i) {
    const auto at = static_cast<size_t>(i);
    testing_support::WriteRow(source->NewRow(0, 0, i), keys[at], values[at]);
  }
  source->Commit(4);
  Hints hints;
  hints.window = {.n_layers = 1, .n_heads = 1, .head_dim = 2, .positions = {Position{3}}, .q = {}};
  hints.window.q = {{0, 0}};
  const Job job{.source = &*source, .hints = &hints, .end = Position{4}};
  const kv::HeadSlots got = SlotsOf(Compress("d2o:keep=0.5,recent=1", job), 0, 0, 4);
  ASSERT_EQ(got.positions, (std::vector<Position>{Position{2}, Position{3}}));
  std::vector<float> value(2);
  got.Value(0, value.data());
  EXPECT_NEAR(value[0], 0, 1e-4);
  EXPECT_NEAR(value[1], 2, 1e-4);
  got.Value(1, value.data());
  EXPECT_NEAR(value[0], 2, 1e-3);  // the mean of 3 and 1
  EXPECT_NEAR(value[1], 1, 1e-3);
}

}  // namespace
}  // namespace vericache::compress
