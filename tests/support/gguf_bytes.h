// GGUF files made by hand, byte by byte, right or wrong: independent of ggml's writer and of ours.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>

namespace vericache::testing_support {

// A folder of this test's own, removed at the end.
class TempFolder {
 public:
  TempFolder() {
    path_ = (std::filesystem::temp_directory_path() / "vericache_XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "no temporary folder: " << path_;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, std::string_view bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }

 private:
  std::string path_;
};

inline std::string ReadBytes(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// Little-endian bytes, appended piece by piece.
class GgufBytes {
 public:
  // The header; counts are what it claims, whatever follows.
  GgufBytes(uint64_t n_tensors, uint64_t n_keys, uint32_t version = 3) {
    bytes_ = "GGUF";
    Add(version).Add(n_tensors).Add(n_keys);
  }

  template <typename T>
  GgufBytes& Add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufBytes& String(std::string_view text) {
    Add(static_cast<uint64_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  GgufBytes& Key(std::string_view name, uint32_t type) { return String(name).Add(type); }
  GgufBytes& Uint32(std::string_view name, uint32_t value) { return Key(name, 4).Add(value); }
  GgufBytes& Float32(std::string_view name, float value) { return Key(name, 6).Add(value); }
  GgufBytes& Text(std::string_view name, std::string_view text) {
    return Key(name, 8).String(text);
  }

  GgufBytes& Tensor(std::string_view name, std::initializer_list<int64_t> shape, int32_t type = 0,
                    uint64_t offset = 0) {
    String(name).Add(static_cast<uint32_t>(shape.size()));
    for (const int64_t n : shape) Add(n);
    return Add(type).Add(offset);
  }
  GgufBytes& PadTo(size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  GgufBytes& Zeros(size_t n) {
    bytes_.resize(bytes_.size() + n);
    return *this;
  }

  const std::string& Bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace vericache::testing_support
