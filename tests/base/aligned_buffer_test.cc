// Goal: zeroed, aligned, owned once.
// Method: examples around page and huge-page sizes.
#include "base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace vericache {
namespace {

static_assert(!std::is_copy_constructible_v<AlignedBuffer> &&
              !std::is_copy_assignable_v<AlignedBuffer>);

bool IsZero(const AlignedBuffer& buffer) {
  return std::all_of(buffer.data(), buffer.data() + buffer.size(),
                     [](std::byte b) { return b == std::byte{0}; });
}

TEST(AlignedBuffer, IsZeroedAlignedAndLargeEnough) {
  for (const size_t n_bytes :
       {size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{5} << 20}) {
    AlignedBuffer buffer(n_bytes);
    EXPECT_GE(buffer.size(), n_bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_TRUE(IsZero(buffer));
    buffer.As<uint8_t>()[n_bytes - 1] = 1;  // the last byte is ours
  }
}

TEST(AlignedBuffer, IsEmptyWithoutBytes) {
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).size(), 0u);
}

TEST(AlignedBuffer, MovesItsMemory) {
  AlignedBuffer first(100);
  first.As<int>()[3] = 42;
  const std::byte* memory = first.data();
  AlignedBuffer second(std::move(first));
  EXPECT_EQ(second.data(), memory);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): the point of the test
  AlignedBuffer third(5000);
  third = std::move(second);
  EXPECT_EQ(third.data(), memory);
  EXPECT_EQ(std::as_const(third).As<int>()[3], 42);
}

TEST(AlignedBuffer, EnsureKeepsWhatIsLargeEnoughAndZeroesWhatGrows) {
  AlignedBuffer buffer(4096);
  buffer.As<int>()[0] = 7;
  buffer.Ensure(10);
  EXPECT_EQ(buffer.size(), 4096u);
  EXPECT_EQ(buffer.As<int>()[0], 7);
  buffer.Ensure(4097);
  EXPECT_EQ(buffer.size(), 8192u);
  EXPECT_TRUE(IsZero(buffer));
}

TEST(AlignedBufferDeathTest, SaysWhenMemoryIsOut) {
  EXPECT_DEATH(AlignedBuffer(size_t{1} << 60), "out of memory: 1152921504606846976 bytes");
}

}  // namespace
}  // namespace vericache
