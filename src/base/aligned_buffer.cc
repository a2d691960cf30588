#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "base/check.h"

namespace vericache {
namespace {
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;
}  // namespace

// Anonymous mappings: zeroed by the kernel when first touched, so that unused capacity costs no
// memory.
AlignedBuffer::AlignedBuffer(size_t n_bytes) {
  if (n_bytes == 0) return;
  size_ = (n_bytes + kPage - 1) / kPage * kPage;
  void* mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  VC_CHECK(mapped != MAP_FAILED, "out of memory: {} bytes", size_);
  data_ = static_cast<std::byte*>(mapped);
  if (size_ >= 2 * kHugePage)
    ::madvise(mapped, size_, MADV_HUGEPAGE);  // advice only: a refusal costs speed
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void AlignedBuffer::Ensure(size_t n_bytes) {
  if (n_bytes > size_) *this = AlignedBuffer(n_bytes);
}

}  // namespace vericache
