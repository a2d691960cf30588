// Goal: a grid is every method with every share and bits it leaves open, each compressor once.
// Method: examples.

#include "apps/acceptance_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/registry.h"

namespace vericache::apps {
namespace {

using testing::ElementsAre;

std::vector<std::string> Expand(const AcceptanceGrid& grid) {
  auto specs = ExpandGrid(grid);
  EXPECT_TRUE(specs.has_value()) << specs.error().message;
  return *std::move(specs);
}

TEST(AcceptanceGrid, TakesEveryShareAndBitsThatASpecLeavesOpen) {
  EXPECT_THAT(Expand({.compressors = {"streaming:sinks=2"}, .keeps = {0.5, 0.25}, .bits = {16, 4}}),
              ElementsAre("streaming:keep=0.5,sinks=2,budget=uniform",
                          "streaming:keep=0.5,sinks=2,budget=uniform+kivi:bits=4",
                          "streaming:keep=0.25,sinks=2,budget=uniform",
                          "streaming:keep=0.25,sinks=2,budget=uniform+kivi:bits=4"));
  EXPECT_THAT(Expand({.compressors = {"streaming:keep=0.3"}, .keeps = {0.5}, .bits = {16}}),
              ElementsAre("streaming:keep=0.3,sinks=4,budget=uniform"));
  EXPECT_THAT(Expand({.compressors = {"kivi"}, .keeps = {0.5}, .bits = {16, 8, 2}}),
              ElementsAre("kivi:bits=8", "kivi:bits=2"));
  EXPECT_THAT(Expand({.compressors = {"streaming+kivi:bits=8"}, .keeps = {0.5}, .bits = {16, 4}}),
              ElementsAre("streaming:keep=0.5,sinks=4,budget=uniform+kivi:bits=8"));
}

TEST(AcceptanceGrid, HoldsEachCompressorOnce) {
  EXPECT_THAT(Expand({.compressors = {"identity", "identity"}, .keeps = {0.5}, .bits = {16, 4}}),
              ElementsAre("identity"));
}

TEST(AcceptanceGrid, TakesEveryListedMethodIfNoneIsNamed) {
  const auto specs = Expand({.compressors = {}, .keeps = {0.5}, .bits = {16, 4}});
  for (const compress::MethodInfo& method : compress::ListMethods()) {
    EXPECT_THAT(specs, testing::Contains(testing::StartsWith(std::string(method.name))));
  }
}

TEST(AcceptanceGrid, RefusesWhatIsNoCompressor) {
  EXPECT_FALSE(ExpandGrid({.compressors = {"nope"}, .keeps = {0.5}, .bits = {16}}).has_value());
  EXPECT_FALSE(
      ExpandGrid({.compressors = {"streaming"}, .keeps = {2.0}, .bits = {16}}).has_value());
  const auto bits = ExpandGrid({.compressors = {"streaming"}, .keeps = {0.5}, .bits = {5}});
  ASSERT_FALSE(bits.has_value());
  EXPECT_THAT(bits.error().message, testing::HasSubstr("8, 4, 2"));
}

}  // namespace
}  // namespace vericache::apps
