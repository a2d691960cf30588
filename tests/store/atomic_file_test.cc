// Goal: a file appears whole or not at all, whatever fails, and what was there before stays.
// Method: a folder of its own; a limit of the process on file sizes stands for a full disk.

#include "store/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "tests/support/gguf_bytes.h"

namespace vericache::store {
namespace {

using testing_support::ReadBytes;
using testing_support::TempFolder;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

int FilesIn(const TempFolder& folder) {
  const std::filesystem::directory_iterator files(folder.Path(""));
  return static_cast<int>(std::distance(begin(files), end(files)));
}

// While it lives, no file of this process grows beyond a size.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t n_bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small{.rlim_cur = n_bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~SmallDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(AtomicFile, AppearsWithFinishAndReplacesWhatWasThere) {
  const TempFolder folder;
  const std::string path = folder.Write("a", "before");
  auto file = AtomicFile::Create(path);
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE(file->Write(Bytes("one, ")).has_value());
  ASSERT_TRUE(file->Write(Bytes("two")).has_value());
  EXPECT_EQ(ReadBytes(path), "before");
  ASSERT_TRUE(file->Finish().has_value());
  EXPECT_EQ(ReadBytes(path), "one, two");
  EXPECT_EQ(FilesIn(folder), 1);
  const auto others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  EXPECT_EQ(std::filesystem::status(path).permissions() & others, std::filesystem::perms::none);
}

TEST(AtomicFile, LeavesNothingWithoutFinish) {
  const TempFolder folder;
  const std::string path = folder.Write("a", "before");
  {
    auto file = AtomicFile::Create(path);
    ASSERT_TRUE(file->Write(Bytes("half")).has_value());
  }
  EXPECT_EQ(ReadBytes(path), "before");
  EXPECT_EQ(FilesIn(folder), 1);
}

TEST(AtomicFile, AFullDiskIsAnErrorAndKeepsTheOldFile) {
  const TempFolder folder;
  const std::string path = folder.Write("a", "before");
  const std::string large(100000, 'x');
  for (const size_t n_bytes : {size_t{5000}, large.size()}) {  // seen when flushed, when written
    const SmallDisk disk(4096);
    auto file = AtomicFile::Create(path);
    ASSERT_TRUE(file.has_value());
    Status status = file->Write(Bytes(large).first(n_bytes));
    if (status) status = file->Finish();
    ASSERT_FALSE(status.has_value()) << n_bytes;
    EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
    EXPECT_NE(status.error().message.find(path + "': File too large"), std::string::npos)
        << status.error().message;
  }
  EXPECT_EQ(ReadBytes(path), "before");
  EXPECT_EQ(FilesIn(folder), 1);
}

TEST(AtomicFile, RefusesWhatItCannotReplace) {
  const TempFolder folder;
  EXPECT_FALSE(AtomicFile::Create(folder.Path("no/such/folder")).has_value());
  const auto refused = AtomicFile::Create(folder.Path(""));
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("no regular file"), std::string::npos);
  EXPECT_FALSE(AtomicFile::Create("/dev/null").has_value());
}

}  // namespace
}  // namespace vericache::store
