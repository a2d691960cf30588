// Goal: a process in a container knows its limits, by control groups of version 1 and 2.
// Method: folders that look like /proc and /sys, written by the test.

#include "base/machine_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

namespace vericache {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class MachineLimitsTest : public ::testing::Test {
 protected:
  MachineLimitsTest()
      : root_(std::filesystem::temp_directory_path() /
              ("vericache_limits_" + std::to_string(::getpid()))) {
    Write("proc/meminfo",
          "MemTotal:       33554432 kB\nMemFree: 1 kB\n"
          "MemAvailable:   16777216 kB\nSwapFree:       1048576 kB\n");
  }
  ~MachineLimitsTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    const auto path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  MachineLimits Read() const { return ReadMachineLimits(root_.string()); }
  static int Cores() { return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)); }

  std::filesystem::path root_;
};

TEST_F(MachineLimitsTest, WithoutAGroupTheMachineIsTheLimit) {
  const MachineLimits limits = Read();
  EXPECT_EQ(limits.n_cores, Cores());
  EXPECT_EQ(limits.memory_bytes, 32 * kGiB);
  EXPECT_EQ(limits.available_bytes, 17 * kGiB);  // swap included
}

TEST_F(MachineLimitsTest, VersionTwoOfTheOwnGroupAndThoseAbove) {
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("sys/fs/cgroup/a/memory.max", "4294967296\n");
  Write("sys/fs/cgroup/a/memory.current", "3221225472\n");
  Write("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 1073741824\nactive_file 7\n");
  Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/a/cpu.max", "100000 100000\n");
  const MachineLimits limits = Read();
  EXPECT_EQ(limits.n_cores, 1);
  EXPECT_EQ(limits.memory_bytes, 4 * kGiB);
  EXPECT_EQ(limits.available_bytes, 2 * kGiB);  // 4 less 3, of which 1 is cache
}

// A container often sees its own group as the root, whatever path it is told.
TEST_F(MachineLimitsTest, APathThatIsNotThereFallsBackToTheRoot) {
  Write("proc/self/cgroup", "0::/docker/0123\n");
  Write("sys/fs/cgroup/memory.max", "2147483648\n");
  Write("sys/fs/cgroup/memory.current", "9999999999\n");
  EXPECT_EQ(Read().memory_bytes, 2 * kGiB);
  EXPECT_EQ(Read().available_bytes, 0u);
}

TEST_F(MachineLimitsTest, VersionOne) {
  Write("proc/self/cgroup", "5:memory:/job\n3:cpu,cpuacct:/job\n0::/\n");
  Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
  Write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "536870912\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "150000\n");
  Write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  const MachineLimits limits = Read();
  EXPECT_EQ(limits.memory_bytes, kGiB);
  EXPECT_EQ(limits.available_bytes, kGiB / 2);
  EXPECT_EQ(limits.n_cores, 1);  // whole cores: a thread more would be stopped at every barrier
}

TEST_F(MachineLimitsTest, NonsenseLimitsNothing) {
  Write("proc/self/cgroup", "\n:\n0:\n0::abc\n7:memory\n8:memory:\n");
  Write("sys/fs/cgroup/memory.max", "-1\n");
  Write("sys/fs/cgroup/cpu.max", "0 0\n");
  EXPECT_EQ(Read().memory_bytes, 32 * kGiB);
  EXPECT_EQ(Read().n_cores, Cores());
  std::filesystem::remove_all(root_);
  EXPECT_GT(Read().available_bytes, 1024 * kGiB);
}

TEST(MachineLimits, OfThisMachineArePossible) {
  const MachineLimits limits = ReadMachineLimits();
  EXPECT_GE(limits.n_cores, 1);
  EXPECT_GT(limits.available_bytes, 0u);
}

}  // namespace
}  // namespace vericache
