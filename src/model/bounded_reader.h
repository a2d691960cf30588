// Reads a file front to back through a small window and never believes a length it has not compared
// with what is left. The first failure sticks: everything read after it is 0 or empty, so that a
// parser checks once per item and not once per field. Threads: one.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/read_only_file.h"

namespace vericache::model {

class BoundedReader {
 public:
  explicit BoundedReader(const ReadOnlyFile& file, uint64_t offset = 0)
      : file_(file), offset_(offset) {}

  bool IsGood() const { return status_.has_value(); }
  const Status& GetStatus() const { return status_; }
  uint64_t Offset() const { return offset_; }
  uint64_t Remaining() const { return file_.Size() - offset_; }

  // Records a failure, prefixed by the file's path, unless there is one already.
  template <typename... Args>
  void Fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    if (status_)
      status_ =
          MakeError(code, "{}: {}", file_.Path(), fmt::format(format, std::forward<Args>(args)...));
  }

  // `what` names the thing read in messages.
  template <typename T>
  T Read(std::string_view what) {
    T value{};
    std::byte bytes[sizeof(T)] = {};
    if (Expect(sizeof(T), what)) Copy(bytes);
    if (status_) std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  // A 64-bit length, then as many bytes.
  std::string ReadString(std::string_view what, uint64_t max_bytes);
  void SkipString(std::string_view what);
  // False, and a failure, if fewer than n_bytes are left.
  bool Expect(uint64_t n_bytes, std::string_view what);
  // Requires: n_bytes <= Remaining().
  void Skip(uint64_t n_bytes) { offset_ += n_bytes; }

 private:
  void Copy(std::span<std::byte> out);

  const ReadOnlyFile& file_;
  Status status_;
  uint64_t offset_ = 0;
  uint64_t window_begin_ = 0;
  std::vector<std::byte> window_;
};

}  // namespace vericache::model
