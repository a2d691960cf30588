#include "model/read_only_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace vericache::model {

Result<ReadOnlyFile> ReadOnlyFile::Open(const std::string& path) {
  // Non-blocking, because opening a pipe would otherwise wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const ErrorCode code =
        errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument;
    return MakeError(code, "{}: cannot be opened: {}", path, std::strerror(errno));
  }
  ReadOnlyFile file(path, descriptor, 0);  // closes on every return below
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) {
    return MakeError(ErrorCode::kInvalidArgument, "{}: cannot be examined: {}", path,
                     std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) {
    return MakeError(ErrorCode::kInvalidArgument, "{}: is a folder, expected a file", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{}: is not a regular file (a pipe, socket or device)", path);
  }
  if (info.st_size == 0) return MakeError(ErrorCode::kDataLoss, "{}: is empty (0 bytes)", path);
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

ReadOnlyFile::ReadOnlyFile(ReadOnlyFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

ReadOnlyFile& ReadOnlyFile::operator=(ReadOnlyFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

ReadOnlyFile::~ReadOnlyFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status ReadOnlyFile::Read(uint64_t offset, std::span<std::byte> out) const {
  size_t n_done = 0;
  while (n_done < out.size()) {
    const ssize_t n = ::pread(descriptor_, out.data() + n_done, out.size() - n_done,
                              static_cast<off_t>(offset + n_done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return MakeError(ErrorCode::kDataLoss, "{}: reading {} bytes at offset {} failed: {}", path_,
                       out.size(), offset, std::strerror(errno));
    }
    if (n == 0) {
      return MakeError(ErrorCode::kDataLoss,
                       "{}: ends at {} of the {} bytes it had when it was opened", path_,
                       offset + n_done, size_);
    }
    n_done += static_cast<size_t>(n);
  }
  return {};
}

}  // namespace vericache::model
