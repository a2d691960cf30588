// Goal: whatever a path names, opening and reading it ends in bytes or in one clear error.
// Method: a folder, a pipe, missing, unreadable and empty files; a file cut while it is open
// (G13).

#include "model/read_only_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/gguf_bytes.h"

namespace vericache::model {
namespace {

using ::testing::HasSubstr;
using testing_support::TempFolder;

TEST(ReadOnlyFile, ReadsAnyPart) {
  const TempFolder folder;
  const auto file = ReadOnlyFile::Open(folder.Write("f", "0123456789"));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->Size(), 10u);
  std::string part(4, ' ');
  ASSERT_TRUE(file->Read(3, std::as_writable_bytes(std::span(part))).has_value());
  EXPECT_EQ(part, "3456");
}

TEST(ReadOnlyFile, RefusesWhatIsNotAFile) {
  const TempFolder folder;
  const auto code = [&](const std::string& path) { return ReadOnlyFile::Open(path).error().code; };
  const auto message = [&](const std::string& path) {
    return ReadOnlyFile::Open(path).error().message;
  };
  EXPECT_EQ(code(folder.Path("missing")), ErrorCode::kNotFound);
  EXPECT_THAT(message(folder.Path("missing")), HasSubstr(folder.Path("missing")));
  EXPECT_EQ(code(folder.Write("f", "x") + "/below"), ErrorCode::kNotFound);
  EXPECT_EQ(code(folder.Path("")), ErrorCode::kInvalidArgument);
  EXPECT_THAT(message(folder.Path("")), HasSubstr("is a folder"));
  EXPECT_EQ(code(folder.Write("empty", "")), ErrorCode::kDataLoss);
  EXPECT_THAT(message(folder.Path("empty")), HasSubstr("is empty"));
  ASSERT_EQ(::mkfifo(folder.Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message(folder.Path("pipe")),
              HasSubstr("is not a regular file"));  // and does not wait for a writer
  EXPECT_THAT(message("/dev/zero"), HasSubstr("is not a regular file"));
}

TEST(ReadOnlyFile, RefusesWhatMayNotBeRead) {
  const TempFolder folder;
  ASSERT_EQ(::chmod(folder.Path("").c_str(), 0755), 0);
  const std::string path = folder.Write("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const bool is_root = ::geteuid() == 0;  // who reads everything, and so becomes nobody
  if (is_root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto opened = ReadOnlyFile::Open(path);
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
}

TEST(ReadOnlyFile, SaysThatAFileWasCutMeanwhile) {
  const TempFolder folder;
  const std::string path = folder.Write("f", std::string(10000, 'x'));
  const auto file = ReadOnlyFile::Open(path);
  ASSERT_TRUE(file.has_value());
  std::filesystem::resize_file(path, 5000);
  std::vector<std::byte> part(4000);
  EXPECT_TRUE(file->Read(0, part).has_value());
  const Status status = file->Read(4000, part);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(status.error().message, HasSubstr("ends at 5000 of the 10000 bytes"));
}

TEST(ReadOnlyFile, KeepsReadingAFileThatWasReplaced) {
  const TempFolder folder;
  const std::string path = folder.Write("f", "old");
  const auto file = ReadOnlyFile::Open(path);
  std::filesystem::rename(folder.Write("g", "new!"), path);
  std::string text(3, ' ');
  ASSERT_TRUE(file->Read(0, std::as_writable_bytes(std::span(text))).has_value());
  EXPECT_EQ(text, "old");
}

}  // namespace
}  // namespace vericache::model
