#include "model/weights.h"

#include <fmt/ranges.h>
#include <ggml.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>

#include "base/check.h"

namespace vericache::model {
namespace {

using kernels::kPanelColumns;
using kernels::WeightType;

// What one thread reads and packs at a time: small enough to stay in its L2.
constexpr size_t kRunBytes = size_t{256} << 10;

std::optional<WeightType> PackedTypeOf(int type) {
  switch (type) {
    case GGML_TYPE_F32:
      return WeightType::kF32;
    case GGML_TYPE_F16:
      return WeightType::kF16;
    case GGML_TYPE_BF16:
      return WeightType::kBf16;
    case GGML_TYPE_Q8_0:
      return WeightType::kQ8_0;
    case GGML_TYPE_Q4_0:
      return WeightType::kQ4_0;
    case GGML_TYPE_Q4_1:
      return WeightType::kQ4_1;
    case GGML_TYPE_Q5_0:
      return WeightType::kQ5_0;
    case GGML_TYPE_Q5_1:
      return WeightType::kQ5_1;
    case GGML_TYPE_Q4_K:
      return WeightType::kQ4K;
    case GGML_TYPE_Q5_K:
      return WeightType::kQ5K;
    case GGML_TYPE_Q6_K:
      return WeightType::kQ6K;
    default:
      return std::nullopt;
  }
}

const ggml_type_traits& TraitsOfType(int type) {
  return *ggml_get_type_traits(static_cast<ggml_type>(type));
}

bool CanDequantize(int type) {
  return type == GGML_TYPE_F32 || TraitsOfType(type).to_float != nullptr;
}

// ggml's reference dequantisation, which the definition names for types without a packed form.
void Dequantize(int type, std::span<const std::byte> row, std::span<float> out) {
  if (type == GGML_TYPE_F32) {
    std::memcpy(out.data(), row.data(), row.size());
  } else {
    TraitsOfType(type).to_float(row.data(), out.data(), static_cast<int64_t>(out.size()));
  }
}

std::string HexOf(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// Panels [begin, end) of one request.
struct Run {
  size_t request_idx;
  int panel_begin;
  int panel_end;
};

// Buffers of one thread.
struct Scratch {
  std::vector<std::byte> rows;
  std::vector<float> floats;
};

}  // namespace

struct WeightLoader::Request {
  const GgufTensor* tensor;
  kernels::PackedMatrix* matrix;  // one of the two is null
  std::vector<float>* vector;
  std::vector<XXH128_hash_t> hashes;  // by panel

  int PanelCount() const {
    return static_cast<int>((tensor->RowCount() + kPanelColumns - 1) / kPanelColumns);
  }

  // Different panels may be loaded at the same time.
  Status LoadPanels(const ReadOnlyFile& file, const Run& run, Scratch& scratch) {
    const size_t row_bytes = tensor->RowBytes();
    const int64_t row_begin = int64_t{run.panel_begin} * kPanelColumns;
    const int64_t row_end = std::min(int64_t{run.panel_end} * kPanelColumns, tensor->RowCount());
    scratch.rows.resize(static_cast<size_t>(row_end - row_begin) * row_bytes);
    VC_RETURN_IF_ERROR(
        file.Read(tensor->offset + static_cast<uint64_t>(row_begin) * row_bytes, scratch.rows));
    for (int panel = run.panel_begin; panel < run.panel_end; ++panel) {
      const size_t begin = static_cast<size_t>(panel - run.panel_begin) * kPanelColumns * row_bytes;
      const size_t n_bytes = std::min(scratch.rows.size() - begin, kPanelColumns * row_bytes);
      hashes[static_cast<size_t>(panel)] = XXH3_128bits(scratch.rows.data() + begin, n_bytes);
    }
    if (vector != nullptr) {
      Dequantize(tensor->type, scratch.rows, *vector);
    } else if (PackedTypeOf(tensor->type)) {
      Pack(scratch.rows.data(), run);
    } else {
      scratch.floats.resize(static_cast<size_t>((row_end - row_begin) * tensor->shape[0]));
      Dequantize(tensor->type, scratch.rows, scratch.floats);
      Pack(std::as_bytes(std::span(scratch.floats)).data(), run);
    }
    return {};
  }

  // rows: those of the run.
  void Pack(const std::byte* rows, const Run& run) {
    kernels::PackPanels(*matrix, rows, run.panel_begin, run.panel_end);
  }

  TensorDigest Digest() const {
    return {.name = tensor->name,
            .type = std::string(GgmlTypeName(tensor->type)),
            .shape = fmt::format("{}", fmt::join(tensor->shape, " ")),
            .hash = HexOf(XXH3_128bits(hashes.data(), hashes.size() * sizeof hashes[0]))};
  }
};

WeightLoader::WeightLoader(const GgufFile& file) : file_(file) {}
WeightLoader::~WeightLoader() = default;

const GgufTensor* WeightLoader::Require(const std::string& name, int64_t n_columns,
                                        int64_t n_rows) {
  if (!status_) return nullptr;
  const GgufTensor* tensor = file_.FindTensor(name);
  if (tensor == nullptr) {
    status_ = MakeError(ErrorCode::kDataLoss, "{}: tensor \"{}\" is missing", file_.Path(), name);
    return nullptr;
  }
  const std::array<int64_t, 4> expected = {n_columns, n_rows, 1, 1};
  if (tensor->shape != expected) {
    status_ =
        MakeError(ErrorCode::kDataLoss, "{}: tensor \"{}\" has dimensions [{}], expected [{}]",
                  file_.Path(), name, fmt::join(tensor->shape, ", "), fmt::join(expected, ", "));
    return nullptr;
  }
  if (!CanDequantize(tensor->type)) {
    status_ = MakeError(ErrorCode::kUnsupported,
                        "{}: tensor \"{}\" has type {}, which cannot hold weights", file_.Path(),
                        name, GgmlTypeName(tensor->type));
    return nullptr;
  }
  return tensor;
}

void WeightLoader::Matrix(const std::string& name, int n, int k, kernels::PackedMatrix& out) {
  if (const GgufTensor* tensor = Require(name, k, n)) {
    requests_.push_back({.tensor = tensor, .matrix = &out, .vector = nullptr, .hashes = {}});
  }
}

void WeightLoader::Vector(const std::string& name, int n, std::vector<float>& out) {
  if (const GgufTensor* tensor = Require(name, n, 1)) {
    requests_.push_back({.tensor = tensor, .matrix = nullptr, .vector = &out, .hashes = {}});
  }
}

void WeightLoader::OptionalMatrix(const std::string& name, int n, int k,
                                  kernels::PackedMatrix& out) {
  if (file_.FindTensor(name) != nullptr) Matrix(name, n, k, out);
}

void WeightLoader::OptionalVector(const std::string& name, int n, std::vector<float>& out) {
  if (file_.FindTensor(name) != nullptr) Vector(name, n, out);
}

Status WeightLoader::CheckNothingLeft() const {
  std::set<std::string_view> asked;
  for (const Request& request : requests_) asked.insert(request.tensor->name);
  for (const GgufTensor& tensor : file_.Tensors()) {
    // The first is read with the configuration; the second holds tables that old files carry and
    // nobody reads.
    const bool is_known =
        tensor.name == "rope_freqs.weight" || tensor.name.ends_with(".attn_rot_embd.weight");
    if (!is_known && !asked.contains(tensor.name)) {
      return MakeError(
          ErrorCode::kUnsupported,
          "{}: tensor \"{}\" is not part of a model of this architecture as we know it",
          file_.Path(), tensor.name);
    }
  }
  return {};
}

Result<std::vector<TensorDigest>> WeightLoader::Load(ThreadTeam& team) {
  VC_RETURN_IF_ERROR(status_);
  VC_RETURN_IF_ERROR(CheckNothingLeft());
  std::vector<Run> runs;
  for (size_t i = 0; i < requests_.size(); ++i) {
    Request& request = requests_[i];
    const GgufTensor& tensor = *request.tensor;
    const int n_panels = request.PanelCount();
    request.hashes.resize(static_cast<size_t>(n_panels));
    if (request.vector != nullptr) {
      request.vector->resize(static_cast<size_t>(tensor.shape[0]));
    } else {
      *request.matrix = kernels::ShapePackedMatrix(
          PackedTypeOf(tensor.type).value_or(WeightType::kF32), static_cast<int>(tensor.shape[1]),
          static_cast<int>(tensor.shape[0]));
    }
    const int run = std::max(1, static_cast<int>(kRunBytes / (tensor.RowBytes() * kPanelColumns)));
    for (int panel = 0; panel < n_panels; panel += run)
      runs.push_back({i, panel, std::min(panel + run, n_panels)});
  }

  WorkQueue queue;
  queue.Reset(static_cast<int>(runs.size()));
  std::mutex mutex;
  Status status;
  team.Run([&](Member&) {
    Scratch scratch;
    for (int i = queue.Next(); i >= 0; i = queue.Next()) {
      const Run& run = runs[static_cast<size_t>(i)];
      Request& request = requests_[run.request_idx];
      const ReadOnlyFile& part = file_.FileOf(*request.tensor);
      if (Status loaded = request.LoadPanels(part, run, scratch); !loaded) {
        const std::lock_guard lock(mutex);
        status = loaded;
        return;
      }
    }
  });
  VC_RETURN_IF_ERROR(status);

  std::vector<TensorDigest> digests;
  for (const Request& request : requests_) digests.push_back(request.Digest());
  return digests;
}

}  // namespace vericache::model
