// Goal: a reader that believes no length, and keeps its first failure.
// Method: files around the size of its window; lengths near 2^64.

#include "model/bounded_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gguf_bytes.h"

namespace vericache::model {
namespace {

using ::testing::HasSubstr;
using testing_support::TempFolder;

class BoundedReaderTest : public ::testing::Test {
 protected:
  const ReadOnlyFile& File(const std::string& bytes) {
    file_ = std::make_unique<ReadOnlyFile>(ReadOnlyFile::Open(folder_.Write("f", bytes)).value());
    return *file_;
  }
  TempFolder folder_;
  std::unique_ptr<ReadOnlyFile> file_;
};

std::string Length(uint64_t n) { return {reinterpret_cast<const char*>(&n), sizeof n}; }

TEST_F(BoundedReaderTest, ReadsAcrossItsWindow) {
  std::string bytes;
  for (uint32_t i = 0; i < 50000; ++i)
    bytes.append(reinterpret_cast<const char*>(&i), 3);  // odd, so that reads straddle
  BoundedReader reader(File(bytes));
  for (uint32_t i = 0; i < 50000; ++i) {
    const auto three = reader.Read<std::array<uint8_t, 3>>("a number");
    ASSERT_EQ(three[0] | three[1] << 8 | three[2] << 16, static_cast<int>(i));
  }
  EXPECT_TRUE(reader.IsGood());
  EXPECT_EQ(reader.Remaining(), 0u);
}

TEST_F(BoundedReaderTest, ReadsAndSkipsStrings) {
  const std::string long_text(100000, 'x');
  BoundedReader reader(File(Length(3) + "one" + Length(100000) + long_text + Length(0) +
                            Length(100000) + long_text + Length(1) + "!"));
  EXPECT_EQ(reader.ReadString("s", 10), "one");
  EXPECT_EQ(reader.ReadString("s", 100000), long_text);
  EXPECT_EQ(reader.ReadString("s", 10), "");
  reader.SkipString("s");
  EXPECT_EQ(reader.ReadString("s", 1), "!");
  EXPECT_TRUE(reader.IsGood());
}

TEST_F(BoundedReaderTest, KeepsTheFirstFailure) {
  BoundedReader reader(File("abcdef"));
  EXPECT_EQ(reader.Read<uint64_t>("the first"), 0u);
  EXPECT_EQ(reader.Read<uint8_t>("the second"), 0u);
  reader.Fail(ErrorCode::kUnsupported, "the third");
  ASSERT_FALSE(reader.IsGood());
  EXPECT_EQ(reader.GetStatus().error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(reader.GetStatus().error().message,
              HasSubstr("the first takes 8 bytes at offset 0, but only 6 are left"));
}

TEST_F(BoundedReaderTest, RefusesLengthsThatWouldWrap) {
  for (const uint64_t length : {~uint64_t{0}, ~uint64_t{0} - 8, uint64_t{1} << 63, uint64_t{6}}) {
    BoundedReader reader(File(Length(length) + "abcde"));
    EXPECT_EQ(reader.ReadString("s", ~uint64_t{0}), "");
    EXPECT_FALSE(reader.IsGood()) << length;
    BoundedReader skipping(File(Length(length) + "abcde"));
    skipping.SkipString("s");
    EXPECT_FALSE(skipping.IsGood()) << length;
  }
  BoundedReader reader(File(Length(5) + "abcde"));
  reader.ReadString("s", 4);
  EXPECT_THAT(reader.GetStatus().error().message, HasSubstr("5 bytes, at most 4 are allowed"));
}

}  // namespace
}  // namespace vericache::model
