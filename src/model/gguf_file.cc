#include "model/gguf_file.h"

#include <fmt/ranges.h>
#include <ggml.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "model/bounded_reader.h"
#include "model/gguf_split.h"

namespace vericache::model {
namespace {

static_assert(std::endian::native == std::endian::little,
              "GGUF files are little-endian, and so are we");

// Bounds of what a header may declare, far above what models have (a few hundred keys, a few
// thousand tensors).
constexpr uint64_t kMaxValues = uint64_t{1} << 16;
constexpr uint64_t kMaxTensors = uint64_t{1} << 16;
constexpr uint64_t kMaxKeyBytes = (uint64_t{1} << 16) - 1;  // by the description
constexpr uint64_t kMaxStringBytes = uint64_t{16}
                                     << 20;  // of a string that is read (a chat template)
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kDefaultAlignment = 32;

// Bytes of one element; 0 for what has no fixed size or does not exist.
uint64_t ElementBytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

// Names come from the file: keep them printable and short in messages.
std::string Printable(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 64)) out += c >= ' ' && c <= '~' ? c : '?';
  return name.size() > 64 ? out + "..." : out;
}

template <typename T>
T FromBytes(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

class GgufHeaderReader {
 public:
  explicit GgufHeaderReader(GgufFile& gguf) : gguf_(gguf), reader_(gguf.File()) {}

  Status Read() {
    ReadStart();
    for (uint64_t i = 0; i < n_values_ && reader_.IsGood(); ++i) ReadValue(i);
    ReadAlignment();
    for (uint64_t i = 0; i < n_tensors_ && reader_.IsGood(); ++i) ReadTensor(i);
    if (reader_.IsGood()) PlaceTensors();
    return reader_.GetStatus();
  }

 private:
  template <typename... Args>
  void Fail(fmt::format_string<Args...> format, Args&&... args) {
    reader_.Fail(ErrorCode::kDataLoss, format, std::forward<Args>(args)...);
  }

  void ReadStart() {
    const auto magic = reader_.Read<std::array<uint8_t, 4>>("the magic");
    if (reader_.IsGood() && magic != std::array<uint8_t, 4>{'G', 'G', 'U', 'F'}) {
      Fail("is not a GGUF file: it starts with the bytes {:02x}, expected 47 47 55 46 (\"GGUF\")",
           fmt::join(magic, " "));
    }
    const auto version = reader_.Read<uint32_t>("the version");
    if (!reader_.IsGood()) return;
    if (version != 2 && version != 3) {
      const bool is_swapped = version != 0 && (version & 0xffffu) == 0;
      return reader_.Fail(ErrorCode::kUnsupported, "is GGUF version {}, supported are 2 and 3{}",
                          version, is_swapped ? " (a big-endian file?)" : "");
    }
    n_tensors_ = reader_.Read<uint64_t>("the number of tensors");
    n_values_ = reader_.Read<uint64_t>("the number of keys");
    if (n_tensors_ > kMaxTensors)
      return Fail("declares {} tensors, at most {} are allowed", n_tensors_, kMaxTensors);
    if (n_values_ > kMaxValues)
      return Fail("declares {} keys, at most {} are allowed", n_values_, kMaxValues);
  }

  void ReadValue(uint64_t index) {
    const std::string key = reader_.ReadString(fmt::format("key {}", index), kMaxKeyBytes);
    if (reader_.IsGood() && key.empty()) Fail("key {} is empty", index);
    if (reader_.IsGood() && gguf_.values_.contains(key))
      Fail("key \"{}\" appears twice", Printable(key));
    const std::string what =
        reader_.IsGood() ? fmt::format("key \"{}\"", Printable(key)) : std::string();
    GgufValue value;
    value.type = static_cast<GgufType>(reader_.Read<uint32_t>(what));
    if (reader_.IsGood() && value.type == GgufType::kArray) {
      value.is_array = true;
      value.type = static_cast<GgufType>(reader_.Read<uint32_t>(what));
      value.n_elements = reader_.Read<uint64_t>(what);
    }
    if (!reader_.IsGood()) return;
    if (value.type == GgufType::kString) {
      SkipStrings(what, value);
    } else if (const uint64_t element = ElementBytes(value.type); element > 0) {
      SkipElements(what, element, value);
    } else {
      Fail("{} has type {}{}, which does not exist{}", what, static_cast<uint32_t>(value.type),
           value.is_array ? " of array elements" : "",
           value.type == GgufType::kArray ? " (arrays of arrays)" : "");
    }
    if (reader_.IsGood()) gguf_.values_.emplace(key, value);
  }

  void SkipElements(std::string_view what, uint64_t element_bytes, GgufValue& value) {
    if (value.n_elements > reader_.Remaining() / element_bytes) {
      return Fail("{} declares {} elements of {} bytes, but only {} bytes are left of a file of {}",
                  what, value.n_elements, element_bytes, reader_.Remaining(), gguf_.File().Size());
    }
    value.offset = reader_.Offset();
    value.n_bytes = value.n_elements * element_bytes;
    reader_.Skip(value.n_bytes);
  }

  void SkipStrings(std::string_view what, GgufValue& value) {
    if (value.n_elements > reader_.Remaining() / sizeof(uint64_t)) {
      return Fail("{} declares {} strings, but only {} bytes are left of a file of {}", what,
                  value.n_elements, reader_.Remaining(), gguf_.File().Size());
    }
    value.offset = value.is_array ? reader_.Offset() : reader_.Offset() + sizeof(uint64_t);
    for (uint64_t i = 0; i < value.n_elements && reader_.IsGood(); ++i) reader_.SkipString(what);
    value.n_bytes = reader_.Offset() - value.offset;
  }

  void ReadAlignment() {
    const GgufValue* value = gguf_.Find("general.alignment");
    if (value == nullptr) return;
    if (value->is_array || value->type != GgufType::kUint32)
      return Fail("general.alignment is not a 32-bit unsigned integer");
    const Result<int64_t> alignment = gguf_.Integer("general.alignment");
    alignment_ = static_cast<uint64_t>(alignment.value_or(0));
    if (!std::has_single_bit(alignment_))
      Fail("general.alignment is {}, expected a power of two", alignment_);
  }

  void ReadTensor(uint64_t index) {
    GgufTensor tensor;
    tensor.name =
        reader_.ReadString(fmt::format("the name of tensor {}", index), GGML_MAX_NAME - 1);
    if (reader_.IsGood() && tensor.name.empty()) Fail("the name of tensor {} is empty", index);
    if (!reader_.IsGood()) return;
    const std::string what = fmt::format("tensor \"{}\"", Printable(tensor.name));
    if (!gguf_.tensor_index_.emplace(tensor.name, gguf_.tensors_.size()).second)
      return Fail("{} appears twice", what);
    const auto n_dims = reader_.Read<uint32_t>(what);
    if (reader_.IsGood() && (n_dims == 0 || n_dims > kMaxDims)) {
      return Fail("{} has {} dimensions, expected 1 to {}", what, n_dims, kMaxDims);
    }
    for (uint32_t i = 0; i < n_dims; ++i) tensor.shape[i] = reader_.Read<int64_t>(what);
    tensor.type = reader_.Read<int32_t>(what);
    tensor.offset = reader_.Read<uint64_t>(what);  // relative to the data until PlaceTensors
    if (reader_.IsGood()) MeasureTensor(what, tensor);
    if (reader_.IsGood()) gguf_.tensors_.push_back(std::move(tensor));
  }

  void MeasureTensor(std::string_view what, GgufTensor& tensor) {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    int64_t n_elements = 1;
    for (const int64_t n : tensor.shape) {
      if (n < 1) return Fail("{} has a dimension of {}, expected at least 1", what, n);
      if (n > kMax / n_elements)
        return Fail("{} has dimensions [{}] whose product overflows", what,
                    fmt::join(tensor.shape, ", "));
      n_elements *= n;
    }
    if (tensor.type < 0 || tensor.type >= GGML_TYPE_COUNT ||
        ggml_blck_size(static_cast<ggml_type>(tensor.type)) == 0) {
      return Fail("{} has type {}, which ggml {} does not know", what, tensor.type, ggml_version());
    }
    const auto type = static_cast<ggml_type>(tensor.type);
    const int64_t block = ggml_blck_size(type);
    if (tensor.shape[0] % block != 0) {
      return Fail("{} of type {} has rows of {} elements, not a multiple of {}", what,
                  GgmlTypeName(tensor.type), tensor.shape[0], block);
    }
    const auto n_blocks = static_cast<uint64_t>(n_elements / block);
    const auto block_bytes = static_cast<uint64_t>(ggml_type_size(type));
    if (n_blocks > gguf_.File().Size() / block_bytes) {
      return Fail(
          "{} of type {} with dimensions [{}] is larger than the file ({} bytes); is it truncated?",
          what, GgmlTypeName(tensor.type), fmt::join(tensor.shape, ", "), gguf_.File().Size());
    }
    tensor.n_bytes = n_blocks * block_bytes;
  }

  void PlaceTensors() {
    if (gguf_.tensors_.empty()) return;
    const uint64_t padding = (alignment_ - reader_.Offset() % alignment_) % alignment_;
    if (!reader_.Expect(padding, "the padding before the tensor data")) return;
    const uint64_t data_begin = reader_.Offset() + padding;
    const uint64_t data_bytes = gguf_.File().Size() - data_begin;
    for (GgufTensor& tensor : gguf_.tensors_) {
      const std::string name = Printable(tensor.name);
      if (tensor.offset % alignment_ != 0) {
        return Fail("tensor \"{}\" lies at offset {}, not a multiple of the alignment {}", name,
                    tensor.offset, alignment_);
      }
      if (tensor.offset > data_bytes || tensor.n_bytes > data_bytes - tensor.offset) {
        return Fail(
            "tensor \"{}\" takes {} bytes at offset {} of the data, but only {} bytes of data are "
            "there (truncated?)",
            name, tensor.n_bytes, tensor.offset, data_bytes);
      }
      tensor.offset += data_begin;
    }
  }

  GgufFile& gguf_;
  BoundedReader reader_;
  uint64_t n_values_ = 0;
  uint64_t n_tensors_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
};

Result<GgufFile> GgufFile::OpenOne(const std::string& path) {
  Result<ReadOnlyFile> file = ReadOnlyFile::Open(path);
  if (!file) return tl::unexpected(file.error());
  GgufFile gguf(std::move(*file));
  VC_RETURN_IF_ERROR(GgufHeaderReader(gguf).Read());
  return gguf;
}

Result<GgufFile> GgufFile::Open(const std::string& path) {
  Result<GgufFile> gguf = OpenOne(path);
  if (!gguf) return gguf;
  const Result<SplitPlace> first = ReadSplitPlace(*gguf);
  if (!first) return tl::unexpected(first.error());
  if (first->count == 1) return gguf;
  const Result<std::vector<std::string>> paths = SplitPaths(path, *first);
  if (!paths) return tl::unexpected(paths.error());
  for (int number = 1; number < first->count; ++number) {
    Result<GgufFile> part = OpenOne((*paths)[static_cast<size_t>(number)]);
    if (!part) return tl::unexpected(part.error());
    const Result<SplitPlace> place = ReadSplitPlace(*part);
    if (!place) return tl::unexpected(place.error());
    VC_RETURN_IF_ERROR(CheckSplitPlace(part->Path(), *place, *first, number));
    VC_RETURN_IF_ERROR(gguf->Append(std::move(*part)));
  }
  VC_RETURN_IF_ERROR(CheckSplitTensors(*gguf, *first));
  return gguf;
}

Status GgufFile::Append(GgufFile part) {
  for (GgufTensor& tensor : part.tensors_) {
    tensor.part = PartCount();
    if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
      return MakeError(ErrorCode::kDataLoss,
                       "{}: tensor \"{}\" is also in an earlier part of the model", part.Path(),
                       Printable(tensor.name));
    }
    tensors_.push_back(std::move(tensor));
  }
  parts_.push_back(std::move(part.parts_.front()));
  return {};
}

namespace {

// The bytes of a lone number, widened: signed and unsigned integers and floats as they are.
Result<int64_t> ReadInteger(const ReadOnlyFile& file, std::string_view key,
                            const GgufValue& value) {
  std::byte bytes[8] = {};
  const uint64_t n_bytes = ElementBytes(value.type);
  VC_RETURN_IF_ERROR(file.Read(value.offset, std::span(bytes).first(static_cast<size_t>(n_bytes))));
  switch (value.type) {
    case GgufType::kUint8:
    case GgufType::kUint16:
    case GgufType::kUint32:
      return static_cast<int64_t>(FromBytes<uint64_t>(bytes));
    case GgufType::kInt8:
      return FromBytes<int8_t>(bytes);
    case GgufType::kInt16:
      return FromBytes<int16_t>(bytes);
    case GgufType::kInt32:
      return FromBytes<int32_t>(bytes);
    case GgufType::kInt64:
      return FromBytes<int64_t>(bytes);
    case GgufType::kUint64: {
      const auto wide = FromBytes<uint64_t>(bytes);
      if (wide > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return MakeError(ErrorCode::kDataLoss, "{}: key \"{}\" is {}, out of range", file.Path(),
                         key, wide);
      }
      return static_cast<int64_t>(wide);
    }
    default:
      return MakeError(ErrorCode::kDataLoss, "{}: key \"{}\" is not an integer", file.Path(), key);
  }
}

}  // namespace

uint64_t GgufFile::SizeInBytes() const {
  uint64_t n_bytes = 0;
  for (const ReadOnlyFile& part : parts_) n_bytes += part.Size();
  return n_bytes;
}

const GgufValue* GgufFile::Find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

Result<GgufValue> GgufFile::Require(std::string_view key, bool is_array) const {
  const GgufValue* value = Find(key);
  if (value == nullptr)
    return MakeError(ErrorCode::kNotFound, "{}: key \"{}\" is missing", Path(), key);
  if (value->is_array != is_array) {
    return MakeError(ErrorCode::kDataLoss, "{}: key \"{}\" is {}, expected {}", Path(), key,
                     is_array ? "one value" : "an array", is_array ? "an array" : "one value");
  }
  return *value;
}

Result<int64_t> GgufFile::Integer(std::string_view key) const {
  const Result<GgufValue> value = Require(key, false);
  if (!value) return tl::unexpected(value.error());
  return ReadInteger(File(), key, *value);
}

Result<double> GgufFile::Real(std::string_view key) const {
  const Result<GgufValue> value = Require(key, false);
  if (!value) return tl::unexpected(value.error());
  if (value->type != GgufType::kFloat32 && value->type != GgufType::kFloat64) {
    return MakeError(ErrorCode::kDataLoss, "{}: key \"{}\" is not a floating-point number", Path(),
                     key);
  }
  std::byte bytes[8] = {};
  VC_RETURN_IF_ERROR(
      File().Read(value->offset, std::span(bytes).first(static_cast<size_t>(value->n_bytes))));
  return value->type == GgufType::kFloat32 ? static_cast<double>(FromBytes<float>(bytes))
                                           : FromBytes<double>(bytes);
}

Result<bool> GgufFile::Bool(std::string_view key) const {
  const Result<GgufValue> value = Require(key, false);
  if (!value) return tl::unexpected(value.error());
  if (value->type != GgufType::kBool) {
    return MakeError(ErrorCode::kDataLoss, "{}: key \"{}\" is not a truth value", Path(), key);
  }
  std::byte byte{};
  VC_RETURN_IF_ERROR(File().Read(value->offset, std::span(&byte, 1)));
  return byte != std::byte{0};
}

Result<std::string> GgufFile::String(std::string_view key) const {
  const Result<GgufValue> value = Require(key, false);
  if (!value) return tl::unexpected(value.error());
  if (value->type != GgufType::kString) {
    return MakeError(ErrorCode::kDataLoss, "{}: key \"{}\" is not a string", Path(), key);
  }
  if (value->n_bytes > kMaxStringBytes) {
    return MakeError(ErrorCode::kDataLoss, "{}: key \"{}\" has {} bytes, at most {} are allowed",
                     Path(), key, value->n_bytes, kMaxStringBytes);
  }
  std::string text(static_cast<size_t>(value->n_bytes), '\0');
  VC_RETURN_IF_ERROR(File().Read(value->offset, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<std::string> GgufFile::StringAt(std::string_view key, uint64_t index) const {
  const Result<GgufValue> value = Require(key, true);
  if (!value) return tl::unexpected(value.error());
  if (value->type != GgufType::kString) {
    return MakeError(ErrorCode::kDataLoss, "{}: key \"{}\" is not an array of strings", Path(),
                     key);
  }
  if (index >= value->n_elements) {
    return MakeError(ErrorCode::kDataLoss,
                     "{}: key \"{}\" has {} elements, number {} was asked for", Path(), key,
                     value->n_elements, index);
  }
  BoundedReader reader(File(), value->offset);
  for (uint64_t i = 0; i < index && reader.IsGood(); ++i) reader.SkipString(key);
  std::string text = reader.ReadString(key, kMaxStringBytes);
  VC_RETURN_IF_ERROR(reader.GetStatus());
  return text;
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

std::string_view GgmlTypeName(int type) {
  const char* name =
      type >= 0 && type < GGML_TYPE_COUNT ? ggml_type_name(static_cast<ggml_type>(type)) : nullptr;
  return name == nullptr ? std::string_view("unknown") : std::string_view(name);
}

}  // namespace vericache::model
