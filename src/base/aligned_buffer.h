// Owned memory for kernels: zeroed, 64-byte aligned, on huge pages when large. Moves, never copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vericache {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t n_bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  template <typename T>
  T* As() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  const T* As() const {
    return reinterpret_cast<const T*>(data_);
  }

  // Grows to at least n_bytes; contents are lost (and zero) when it grows, kept otherwise.
  void Ensure(size_t n_bytes);

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace vericache
