// A regular file read by offset. Reading, not mapping: a file that shrinks under a reader then ends
// in an error, never in a signal, and its pages never count as memory of this process. Threads:
// const members are re-entrant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace vericache::model {

class ReadOnlyFile {
 public:
  // Errors: kNotFound; kInvalidArgument for a folder, a pipe or a file without read permission;
  // kDataLoss for an empty file.
  static Result<ReadOnlyFile> Open(const std::string& path);

  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile& operator=(ReadOnlyFile&& other) noexcept;
  ~ReadOnlyFile();

  const std::string& Path() const { return path_; }
  // Bytes when it was opened.
  uint64_t Size() const { return size_; }
  // Fills `out` from `offset` on.
  // Errors: kDataLoss if the file ends before (it was cut since it was opened) or cannot be read.
  Status Read(uint64_t offset, std::span<std::byte> out) const;

 private:
  ReadOnlyFile(std::string path, int descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace vericache::model
