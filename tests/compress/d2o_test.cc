// Goal: D2O keeps what H2O keeps, and of the rest lets join what is at least as similar as their
// mean; all of it where all are equal.
// Method: random sources against h2o; examples that can be followed by hand. The blend on random
// tensors is golden_test's.

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
  const kv::KvShape& shape = options.kv.shape;
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    for (int head = 0; head < shape.n_kv_heads; ++head) {
      ASSERT_EQ(joined.Head(layer, head).positions, kept.Head(layer, head).positions);
    }
  }
}

// A source of one head of two dims, and a window of one query that sees all alike.
class TinyJob {
 public:
  using Vectors = std::vector<std::vector<float>>;
  TinyJob(const Vectors& keys, const Vectors& values)
      : n_tokens_(static_cast<int>(keys.size())),
        source_(rng_, {.shape = {.n_layers = 1, .n_kv_heads = 1, .head_dim = 2}}, n_tokens_) {
    EXPECT_TRUE(source_->Reserve(n_tokens_).has_value());
    for (int i = 0; i < n_tokens_; ++i) {
      const auto at = static_cast<size_t>(i);
      testing_support::WriteRow(source_->NewRow(0, 0, i), keys[at], values[at]);
    }
    source_->Commit(n_tokens_);
    hints_.window = {.n_layers = 1,
                     .n_heads = 1,
                     .head_dim = 2,
                     .positions = {Position{n_tokens_ - 1}},
                     .q = {{0, 0}}};
  }

  kv::HeadSlots Kept(const std::string& spec) const {
    const Job job{.source = &*source_, .hints = &hints_, .end = Position{n_tokens_}};
    return SlotsOf(Compress(spec, job), 0, 0, n_tokens_);
  }

 private:
  int n_tokens_;
  testing_support::Rng rng_{1};
  testing_support::RandomKv source_;
  Hints hints_;
};

// Four keys; the last two are kept. The first is that of the last, the second is at 60 degrees to
// it: the mean cosine is .75, so the first joins with equal weight and the second is lost.
TEST(D2o, LetsJoinWhatIsMoreSimilarThanTheMean) {
  const TinyJob job({{1, 0}, {0.5f, 0.8660254f}, {-1, 0}, {1, 0}},
                    {{3, 1}, {9, 9}, {0, 2}, {1, 1}});
  const kv::HeadSlots got = job.Kept("d2o:keep=0.5,recent=1");
  ASSERT_EQ(got.positions, (std::vector<Position>{Position{2}, Position{3}}));
  std::vector<float> value(2);
  got.Value(0, value.data());
  EXPECT_NEAR(value[0], 0, 1e-4);
  EXPECT_NEAR(value[1], 2, 1e-4);
  got.Value(1, value.data());
  EXPECT_NEAR(value[0], 2, 1e-3);  // the mean of 3 and 1
  EXPECT_NEAR(value[1], 1, 1e-3);
}

// Equal keys: every evicted token is exactly as similar as the mean and joins the first kept one,
// with the weight of that, however the mean of so many equal cosines is rounded.
TEST(D2o, LetsAllJoinWhereAllAreEqual) {
  for (int n_evicted = 1; n_evicted <= 60; ++n_evicted) {
    TinyJob::Vectors keys(static_cast<size_t>(2 * n_evicted), {0.3f, 0.7f});
    TinyJob::Vectors values(static_cast<size_t>(n_evicted), {1, 0});
    values.resize(keys.size(), {0, 1});
    const kv::HeadSlots got = TinyJob(keys, values).Kept("d2o:keep=0.5,recent=1");
    ASSERT_EQ(got.positions.front(), Position{n_evicted});
    float value[2];
    got.Value(0, value);
    EXPECT_NEAR(value[0], n_evicted / (n_evicted + 1.0), 1e-3) << n_evicted;
  }
}

}  // namespace
}  // namespace vericache::compress
