// Goal: a chain is its stages one after the other, and its traits are what they are together.
// Method: a chain against its stages run by hand; traits of chosen pairs.

#include "compress/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::AnyJob;
using testing_support::Compress;
using testing_support::Make;
using testing_support::RandomJob;
using testing_support::SamePacked;

PROPERTY(Chain, IsItsStagesOneAfterTheOther, 12) {
  const RandomJob job(rng, AnyJob(rng));
  const auto stages = rng.OneOf<std::pair<const char*, const char*>>(
      {{"snapkv:keep=0.5", "streaming:keep=0.25"},
       {"streaming:keep=0.5", "snapkv:keep=0.25"},
       {"streaming:keep=0.5", "centroid:keep=0.25,recent=8"},
       {"centroid:keep=0.5,recent=8", "streaming:keep=0.25"}});
  const Job whole = job.At(rng.In(0, job.Full().Length()));
  const kv::PackedKv first = Compress(stages.first, whole);
  Job rest = whole;
  rest.source = &first;
  const kv::PackedKv by_hand = Compress(stages.second, rest);
  const kv::PackedKv chained =
      Compress(std::string(stages.first) + "+" + stages.second, whole, rng.In(1, 2));
  EXPECT_TRUE(SamePacked(chained, by_hand));
}

TEST(Chain, JoinsTheTraitsOfItsStages) {
  const auto snap = Make("snapkv+centroid:keep=0.1");
  EXPECT_EQ(snap->GetTraits().name, "snapkv+centroid");
  EXPECT_EQ(snap->GetTraits().needs, Needs::kWindowQueries);
  EXPECT_EQ(snap->GetTraits().n_window, 64);
  EXPECT_FALSE(snap->GetTraits().is_query_agnostic);
  EXPECT_EQ(snap->GetTraits().refresh, Refresh::kFromDraft);
  EXPECT_EQ(snap->GetTraits().version, 2);

  const auto plain = Make("streaming+kivi:bits=8");
  EXPECT_EQ(plain->GetTraits().needs, Needs::kNothing);
  EXPECT_TRUE(plain->GetTraits().is_query_agnostic);
  EXPECT_EQ(plain->GetTraits().refresh, Refresh::kFromFull);
  EXPECT_FALSE(plain->GetTraits().is_exact);

  EXPECT_EQ(Make("identity+streaming")->GetTraits().body_grain, 512);
  EXPECT_FALSE(Make("identity+streaming")->GetTraits().is_exact);
  EXPECT_TRUE(Make("identity+identity")->GetTraits().is_exact);
  EXPECT_TRUE(Make("streaming+hostile")->GetTraits().is_ragged);
}

TEST(Chain, LetsNothingFollowAPackingStage) {
  for (const char* spec : {"kivi+streaming", "kivi:bits=8+kivi:bits=4", "snapkv+kivi+centroid"}) {
    const auto made = MakeCompressor(spec);
    ASSERT_FALSE(made.has_value()) << spec;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(made.error().message, testing::HasSubstr("kivi must come last"));
  }
}

}  // namespace
}  // namespace vericache::compress
