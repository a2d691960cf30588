// Goal: errors travel by value with code and message, and leave a function early without touching
// what follows.
#include "base/result.h"

#include <gtest/gtest.h>

namespace vericache {
namespace {

Status CheckLength(int length) {
  if (length < 0) return MakeError(ErrorCode::kInvalidArgument, "length {} is negative", length);
  return {};
}

Result<int> Twice(int length) {
  VC_RETURN_IF_ERROR(CheckLength(length));
  return 2 * length;
}

Status UseTwice(int length, bool* went_on) {
  VC_RETURN_IF_ERROR(Twice(length));
  *went_on = true;
  return {};
}

TEST(Result, CarriesTheValue) {
  EXPECT_TRUE(CheckLength(3).has_value());
  ASSERT_TRUE(Twice(3).has_value());
  EXPECT_EQ(*Twice(3), 6);
}

TEST(Result, CarriesCodeAndMessageAcrossTypes) {
  const Result<int> result = Twice(-4);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().message, "length -4 is negative");
}

TEST(Result, LeavesTheFunctionAtTheFirstError) {
  bool went_on = false;
  EXPECT_FALSE(UseTwice(-1, &went_on).has_value());
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(UseTwice(1, &went_on).has_value());
  EXPECT_TRUE(went_on);
}

}  // namespace
}  // namespace vericache
