// Goal: a failed CHECK ends the process with the place, the condition and the values; a passing one
// costs nothing visible.
#include "base/check.h"

#include <gtest/gtest.h>

namespace vericache {
namespace {

TEST(CheckDeathTest, SaysWhereWhatAndWithWhichValues) {
  const int n_rows = 3;
  EXPECT_DEATH(VC_CHECK(n_rows > 5, "n_rows = {}", n_rows),
               "check_test.cc:[0-9]+: CHECK failed: n_rows > 5 n_rows = 3");
  EXPECT_DEATH(VC_CHECK(n_rows == 4), "CHECK failed: n_rows == 4");
}

TEST(Check, EvaluatesItsConditionOnce) {
  int n_calls = 0;
  VC_CHECK(++n_calls == 1, "n_calls = {}", n_calls);
  EXPECT_EQ(n_calls, 1);
}

TEST(Check, IsOneStatement) {
  int taken = 0;
  if (taken == 1)
    VC_CHECK(false);
  else
    taken = 2;
  EXPECT_EQ(taken, 2);
}

TEST(CheckDeathTest, DcheckActsInDevBuildsOnly) {
#if defined(VERICACHE_DCHECK)
  EXPECT_DEATH(VC_DCHECK(1 > 2, "in a hot loop"), "1 > 2 in a hot loop");
#else
  VC_DCHECK(1 > 2, "in a hot loop");
#endif
}

}  // namespace
}  // namespace vericache
