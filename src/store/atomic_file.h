// A file that appears whole or not at all: written under a temporary name in the same folder, then
// renamed. What was there before stays until that moment.
//
// Threads: one user at a time.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace vericache::store {

class AtomicFile {
 public:
  // Errors: kNotFound with the system's reason, as for all members.
  static Result<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // without Finish, nothing is left

  Status Write(std::span<const std::byte> bytes);
  // Everything is on the disk, and has its name.
  Status Finish();

 private:
  AtomicFile(std::string path, std::string temporary, std::FILE* file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}

  std::string path_;
  std::string temporary_;
  std::FILE* file_;
};

}  // namespace vericache::store
