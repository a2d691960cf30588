// Goal: the progress line says how far prefill is and how long it will take.
#include "apps/progress.h"

#include <gtest/gtest.h>

namespace vericache::apps {
namespace {

TEST(ProgressLine, ShowsShareSpeedAndTimeLeft) {
  EXPECT_EQ(ProgressLine("", 1000, 4000, 2.0),
            "prefill [######..................] 1000/4000 tokens, 500 tokens/s, 6 s left");
  EXPECT_EQ(ProgressLine("full", 0, 10, 0.0),
            "full prefill [........................] 0/10 tokens, 0 tokens/s, 0 s left");
}

}  // namespace
}  // namespace vericache::apps
