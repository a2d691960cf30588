// Goal: a running clock gives every span to one part, a stopped one costs nothing and counts
// nothing.
#include "model/pass_parts.h"

#include <gtest/gtest.h>

namespace vericache::model {
namespace {

double Of(const PartClock& clock, PassPart part) {
  return clock.Times().seconds[static_cast<size_t>(part)];
}

TEST(PartClock, GivesTheTimeSinceTheLastLapToAPart) {
  PartClock clock;
  clock.Start(true);
  const auto begin = std::chrono::steady_clock::now();
  clock.Lap(PassPart::kEmbed);
  clock.Lap(PassPart::kQkv);
  clock.Lap(PassPart::kEmbed);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(Of(clock, PassPart::kEmbed), 0.0);
  EXPECT_GT(Of(clock, PassPart::kQkv), 0.0);
  EXPECT_EQ(Of(clock, PassPart::kLogits), 0.0);
  EXPECT_LT(Of(clock, PassPart::kQkv), passed.count());
}

TEST(PartClock, StandsStillUnlessStarted) {
  PartClock clock;
  clock.Lap(PassPart::kEmbed);
  EXPECT_EQ(Of(clock, PassPart::kEmbed), 0.0);
  clock.Start(true);
  clock.Lap(PassPart::kEmbed);
  const double before = Of(clock, PassPart::kEmbed);
  clock.Start(false);
  clock.Lap(PassPart::kEmbed);
  EXPECT_EQ(Of(clock, PassPart::kEmbed), before);
}

}  // namespace
}  // namespace vericache::model
