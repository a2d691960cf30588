// Bytes as a file with a path, in memory.
#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"

namespace vericache::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::span<const uint8_t> bytes) : descriptor_(::memfd_create("input", 0)) {
    VC_CHECK(descriptor_ >= 0);
    size_t n_done = 0;
    while (n_done < bytes.size()) {
      const ssize_t n = ::write(descriptor_, bytes.data() + n_done, bytes.size() - n_done);
      VC_CHECK(n > 0);
      n_done += static_cast<size_t>(n);
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string Path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

}  // namespace vericache::fuzz
