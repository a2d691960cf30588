// Goal: merge keeps what its base keeps, keys bit for bit, and only values change.
// Method: against the base method on random tensors; the blend itself is golden_test's.

#include <gtest/gtest.h>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::Make;
using testing_support::RandomJob;
using testing_support::SlotsOf;

PROPERTY(Merge, KeepsTheSlotsAndKeysOfItsBase, 10) {
  auto options = testing_support::AnyJob(rng);
  options.kv.n_tokens = rng.In(2, 300);
  const RandomJob random(rng, options);
  for (const std::string base : {"keydiff", "knorm", "snapkv", "h2o", "expected"}) {
    const std::string budget = rng.OneOf<std::string>({"uniform", "layer", "head"});
    const auto evicted = Compress(fmt::format("{}:keep=0.4,budget={}", base, budget), random.All());
    const auto merged =
        Compress(fmt::format("merge:keep=0.4,base={},budget={}", base, budget), random.All());
    const kv::KvShape& shape = options.kv.shape;
    for (int head = 0; head < shape.n_kv_heads; ++head) {
      const kv::HeadSlots want = SlotsOf(evicted, 0, head, options.kv.n_tokens);
      const kv::HeadSlots got = SlotsOf(merged, 0, head, options.kv.n_tokens);
      ASSERT_EQ(got.positions, want.positions) << base;
      ASSERT_EQ(got.key_codes, want.key_codes) << base;
      ASSERT_EQ(got.key_steps, want.key_steps) << base;
      ASSERT_EQ(got.degrees, want.degrees) << base;
    }
  }
}

TEST(Merge, BlendsValuesOfWhatIsEvicted) {
  testing_support::Rng rng(1);
  const RandomJob random(rng, {.kv = {.n_tokens = 100}});
  EXPECT_NE(SlotsOf(Compress("merge:keep=0.5", random.All()), 0, 0, 100).value_codes,
            SlotsOf(Compress("keydiff:keep=0.5", random.All()), 0, 0, 100).value_codes);
  EXPECT_EQ(SlotsOf(Compress("merge:keep=1", random.All()), 0, 0, 100).value_codes,
            SlotsOf(random.Full(), 0, 0, 100).value_codes);
}

TEST(Merge, HasTheTraitsOfItsBase) {
  EXPECT_TRUE(Make("merge")->GetTraits().is_query_agnostic);
  EXPECT_FALSE(Make("merge:base=snapkv")->GetTraits().is_query_agnostic);
  EXPECT_EQ(Make("merge:base=h2o")->GetTraits().n_window, 256);
  EXPECT_TRUE(Make("merge:budget=head")->GetTraits().is_ragged);
  EXPECT_EQ(Make("merge:base=h2o")->GetTraits().name, "merge");
}

}  // namespace
}  // namespace vericache::compress
