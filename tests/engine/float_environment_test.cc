// Goal: a process that flushes subnormal numbers or rounds another way is noticed.
// Method: the state is spoiled on a thread of its own, as a fast-math library would.

#include "engine/float_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <functional>
#include <thread>

namespace vericache::engine {
namespace {

// What the check says on a thread whose state `spoil` has changed.
std::string Complaint(const std::function<void()>& spoil) {
  std::string complaint;
  std::thread thread([&] {
    spoil();
    const Status status = CheckFloatEnvironment();
    if (!status) complaint = status.error().message;
  });
  thread.join();
  return complaint;
}

TEST(FloatEnvironment, IsFineByDefault) {
  EXPECT_EQ(Complaint([] {}), "");
}

TEST(FloatEnvironment, NoticesAnotherRounding) {
  const std::string complaint = Complaint([] { std::fesetround(FE_UPWARD); });
  EXPECT_NE(complaint.find("rounding"), std::string::npos) << complaint;
}

#if defined(__x86_64__)
TEST(FloatEnvironment, NoticesFlushedSubnormals) {
  constexpr unsigned kFlushToZero = 0x8000;
  constexpr unsigned kSubnormalsAreZero = 0x0040;
  const auto set = [](unsigned flags) { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | flags); };
  EXPECT_NE(Complaint([&] { set(kFlushToZero); }).find("FTZ"), std::string::npos);
  EXPECT_NE(Complaint([&] { set(kSubnormalsAreZero); }).find("DAZ"), std::string::npos);
}
#endif

}  // namespace
}  // namespace vericache::engine
