#include "apps/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace vericache::apps {
namespace {

constexpr size_t kTextBytesMax = size_t{64} << 20;  // more than 16 M tokens: no context holds it
constexpr size_t kReadBytes = size_t{64} << 10;

// Closes what it opened, never standard input.
class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : fd_(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ > STDIN_FILENO) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int Get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<std::string> ReadTextFile(const std::string& path) {
  const std::string name = path == "-" ? "standard input" : "'" + path + "'";
  const Descriptor file(path);
  if (file.Get() < 0) {
    return MakeError(ErrorCode::kNotFound, "cannot open {}: {}", name, std::strerror(errno));
  }
  std::string text;
  std::array<char, kReadBytes> buffer;
  while (true) {
    const ssize_t n_read = read(file.Get(), buffer.data(), buffer.size());
    if (n_read < 0 && errno == EINTR) continue;
    if (n_read < 0)
      return MakeError(ErrorCode::kDataLoss, "cannot read {}: {}", name, std::strerror(errno));
    if (n_read == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n_read));
    if (text.size() > kTextBytesMax) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "{} is larger than {} MiB, more than any context holds", name,
                       kTextBytesMax >> 20);
    }
  }
}

}  // namespace vericache::apps
