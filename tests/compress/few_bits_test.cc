// Goal: what kivi and rotated share: the bits there are, that nothing follows them in a chain, and
// that heads they cannot pack are refused with what would do.
// Method: specs and messages. What each packs is kivi_test's and rotated_test's.

#include "compress/few_bits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing::HasSubstr;
using testing_support::Compress;
using testing_support::Make;
using testing_support::RandomJob;

constexpr const char* kNames[] = {"kivi", "rotated"};

TEST(FewBits, PacksInTheBitsAskedFor) {
  testing_support::Rng rng(1);
  const RandomJob job(rng, {.kv = {.n_tokens = 10}});
  for (const std::string name : kNames) {
    for (const auto& [bits, format] :
         {std::pair{":bits=8", kernels::KvFormat::kQ8},
          std::pair{":bits=4", kernels::KvFormat::kQ4},
          std::pair{":bits=2", kernels::KvFormat::kQ2}, std::pair{"", kernels::KvFormat::kQ4}}) {
      EXPECT_EQ(Compress(name + bits, job.All()).Head(0, 0).format, format) << name << bits;
      EXPECT_EQ(Compress(name + bits, job.All()).Head(0, 0).is_rotated, name == "rotated");
    }
    EXPECT_EQ(Make(name)->GetTraits().name, name);
    EXPECT_TRUE(Make(name)->GetTraits().is_final);
    EXPECT_EQ(Make(name)->Spec(), name + ":bits=4");
    EXPECT_FALSE(MakeCompressor(name + ":bits=3").has_value());
    EXPECT_FALSE(MakeCompressor(name + "+streaming").has_value());
  }
}

TEST(FewBits, RefusesHeadsItCannotPack) {
  testing_support::Rng rng(3);
  const RandomJob job(
      rng, {.kv = {.shape = {.n_layers = 1, .n_kv_heads = 1, .head_dim = 24}, .n_tokens = 10}});
  ThreadTeam team(1);
  for (const std::string name : kNames) {
    const auto refused = Make(name + ":bits=2")->Compress(job.All(), team);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr(name + ":bits=2 cannot pack heads of 24 dims"));
    EXPECT_TRUE(Make(name + ":bits=4")->Compress(job.All(), team).has_value());
    EXPECT_FALSE(Make("streaming+" + name + ":bits=2")->Compress(job.All(), team).has_value());
  }
}

}  // namespace
}  // namespace vericache::compress
