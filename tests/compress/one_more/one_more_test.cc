// Goal: a new method takes one file and one line in the registry, and joins everything by that:
// listing, specs, chains, budgets, the properties of all methods, the identity grid.
// Method: this binary is the library with every_other.cc and a registry that has one line more
// (CMakeLists.txt writes it); compressor_test.cc is part of it, unchanged, and the grid of
// identity_test.cc is asked for the method and plays cases of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/compress_jobs.h"
#include "tests/support/identity_case.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::HoldsSlots;
using testing_support::Make;
using testing_support::RandomJob;

TEST(OneMore, IsListedWithItsParameters) {
  const auto methods = ListMethods();
  const auto added = std::find_if(methods.begin(), methods.end(),
                                  [](const MethodInfo& m) { return m.name == "every_other"; });
  ASSERT_NE(added, methods.end());
  EXPECT_EQ(added->summary, "keeps every other token");
  EXPECT_EQ(added->parameters, "keep=0.5,budget=uniform");
}

TEST(OneMore, CompressesByItsSpec) {
  testing_support::Rng rng(1);
  const RandomJob random(rng, {.kv = {.n_tokens = 10}});
  EXPECT_TRUE(
      HoldsSlots(Compress("every_other", random.All()), random.Full(), {0, 0}, {0, 2, 4, 6, 8}));
}

TEST(OneMore, IsRefusedAndExplainedAsOthersAre) {
  const auto wrong = MakeCompressor("every_other:keep=2");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().message, testing::HasSubstr("every_other: keep must be above 0"));
  const auto unknown = MakeCompressor("nope");
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("every_other"));
}

TEST(OneMore, TakesPartInChainsAndBudgets) {
  EXPECT_EQ(Make("every_other+kivi")->Spec(), "every_other:keep=0.5,budget=uniform+kivi:bits=4");
  EXPECT_TRUE(Make("every_other:budget=head+kivi")->GetTraits().is_ragged);
}

TEST(OneMore, JoinsTheIdentityGrid) {
  EXPECT_THAT(testing_support::IdentityGrid().specs, testing::Contains("every_other"));
  testing_support::IdentityRunner runner;
  for (const int draft_len : {1, 7}) {
    runner.Run({.spec = "every_other", .draft_len = draft_len, .n_prompt = 200});
  }
  EXPECT_EQ(runner.n_compressions, 2);
  EXPECT_GT(runner.n_accepted, 0);
}

}  // namespace
}  // namespace vericache::compress
