// A GGUF file's header, or those of a model split over several, read and validated once, front to
// back, through a small window: what is declared is compared with what the file holds before
// anything is allocated. Every malformed file ends in one error that names file, key or tensor, and
// value.
//
// Arrays and long strings stay in the file and are read on demand. docs/decisions/ says why this is
// not ggml's reader. Threads: const members are re-entrant. Source:  the GGUF description of ggml
// (versions 2 and 3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/read_only_file.h"

namespace vericache::model {

// Value types as GGUF numbers them.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// Where a value lies in the file.
struct GgufValue {
  GgufType type = GgufType::kUint8;  // of the elements, for an array
  bool is_array = false;
  uint64_t n_elements = 1;
  uint64_t offset = 0;   // of the first element; of the characters, for a lone string
  uint64_t n_bytes = 0;  // all elements, lengths of strings included
};

struct GgufTensor {
  std::string name;
  int type = 0;                                 // a ggml_type
  std::array<int64_t, 4> shape = {1, 1, 1, 1};  // fastest first: [columns, rows, ...]; all >= 1
  int part = 0;                                 // which file of a split model it lies in
  uint64_t offset = 0;                          // in that file
  uint64_t n_bytes = 0;

  int64_t RowCount() const { return shape[1] * shape[2] * shape[3]; }
  uint64_t RowBytes() const { return n_bytes / static_cast<uint64_t>(RowCount()); }
};

class GgufFile {
 public:
  // Of a split model `path` is the first file; the others lie beside it (gguf_split.h).
  // Errors: as ReadOnlyFile::Open; kDataLoss for what is malformed or cut, or does not belong
  // together; kUnsupported for versions.
  static Result<GgufFile> Open(const std::string& path);

  // The file, or the first of a split model: all keys are in it.
  const ReadOnlyFile& File() const { return parts_.front(); }
  const ReadOnlyFile& FileOf(const GgufTensor& tensor) const {
    return parts_[static_cast<size_t>(tensor.part)];
  }
  int PartCount() const { return static_cast<int>(parts_.size()); }
  uint64_t SizeInBytes() const;  // of all parts
  const std::string& Path() const { return File().Path(); }

  const std::map<std::string, GgufValue, std::less<>>& Values() const { return values_; }
  const GgufValue* Find(std::string_view key) const;
  // One value. Errors: kNotFound if the key is absent, kDataLoss if it has another type.
  Result<int64_t> Integer(std::string_view key) const;
  Result<double> Real(std::string_view key) const;
  Result<bool> Bool(std::string_view key) const;
  Result<std::string> String(std::string_view key) const;
  // One element of an array of strings. Errors: as above, and kDataLoss for an index past the end.
  // Cost: walks the array from its start.
  Result<std::string> StringAt(std::string_view key, uint64_t index) const;

  std::span<const GgufTensor> Tensors() const { return tensors_; }
  const GgufTensor* FindTensor(std::string_view name) const;

 private:
  friend class GgufHeaderReader;
  explicit GgufFile(ReadOnlyFile file) { parts_.push_back(std::move(file)); }
  static Result<GgufFile> OpenOne(const std::string& path);
  // Takes the tensors of the next file of a split model.
  Status Append(GgufFile part);
  // The value of a key that must exist, and be an array or not.
  Result<GgufValue> Require(std::string_view key, bool is_array) const;

  std::vector<ReadOnlyFile> parts_;  // at least one
  std::map<std::string, GgufValue, std::less<>> values_;
  std::vector<GgufTensor> tensors_;                          // in file order, part by part
  std::map<std::string, size_t, std::less<>> tensor_index_;  // by name
};

// "f32", "q4_K", ...
std::string_view GgmlTypeName(int type);

}  // namespace vericache::model
