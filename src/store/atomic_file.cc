#include "store/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace vericache::store {
namespace {

Error ErrorAt(const std::string& path) {
  return {ErrorCode::kNotFound, fmt::format("cannot write '{}': {}", path, std::strerror(errno))};
}

}  // namespace

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  struct stat known {};
  if (::stat(path.c_str(), &known) == 0 && !S_ISREG(known.st_mode)) {
    return MakeError(ErrorCode::kNotFound, "cannot write '{}': it is no regular file", path);
  }
  std::string temporary = path + ".XXXXXX";
  const int descriptor = ::mkstemp(temporary.data());  // readable by its owner alone
  if (descriptor < 0) return tl::unexpected(ErrorAt(path));
  std::FILE* file = ::fdopen(descriptor, "wb");
  VC_CHECK(file != nullptr, "errno {}", errno);
  return AtomicFile(path, temporary, file);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      file_(std::exchange(other.file_, nullptr)) {}

AtomicFile::~AtomicFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  ::unlink(temporary_.c_str());
}

Status AtomicFile::Write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};  // fwrite declares its pointer never null, even for no bytes
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size()) return {};
  return tl::unexpected(ErrorAt(path_));
}

Status AtomicFile::Finish() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) {
    return tl::unexpected(ErrorAt(path_));
  }
  std::FILE* file = std::exchange(file_, nullptr);
  if (std::fclose(file) == 0 && std::rename(temporary_.c_str(), path_.c_str()) == 0) return {};
  Error error = ErrorAt(path_);
  ::unlink(temporary_.c_str());
  return tl::unexpected(std::move(error));
}

}  // namespace vericache::store
