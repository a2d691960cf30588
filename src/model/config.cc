#include "model/config.h"

#include <fmt/ranges.h>
#include <ggml.h>

#include <cmath>
#include <limits>

#include "model/architectures.h"

namespace vericache::model {
namespace {

// Bounds far above what exists; they keep products of two inside 64 bits, and typing errors out.
constexpr int kMaxLayers = 1024;
constexpr int kMaxHeads = 4096;
constexpr int kMaxWidth = 1 << 20;
constexpr int kMaxContext = 1 << 28;
constexpr int kMaxVocab = 1 << 24;
constexpr int kDotUnit = 32;  // inputs of a matrix come in blocks of this many

// Reads the keys of one architecture; the first error sticks.
class KeyReader {
 public:
  KeyReader(const GgufFile& file, std::string_view architecture)
      : file_(file), architecture_(architecture) {}

  std::string Key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  bool Has(std::string_view name) const { return file_.Find(Key(name)) != nullptr; }
  const Status& GetStatus() const { return status_; }

  template <typename... Args>
  void Fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    if (status_)
      status_ =
          MakeError(code, "{}: {}", file_.Path(), fmt::format(format, std::forward<Args>(args)...));
  }

  void Check(const Status& status) {
    if (status_) status_ = status;
  }

  // A whole number in [1, max].
  int Count(std::string_view name, int max) {
    const int64_t value = Take(file_.Integer(Key(name)));
    if (status_ && (value < 1 || value > max)) {
      Fail(ErrorCode::kDataLoss, "key \"{}\" is {}, expected 1 to {}", Key(name), value, max);
    }
    return static_cast<int>(value);
  }
  int CountOr(std::string_view name, int max, int otherwise) {
    return Has(name) ? Count(name, max) : otherwise;
  }

  // A finite number in [min, max].
  double Number(std::string_view name, double min, double max) {
    const double value = Take(file_.Real(Key(name)));
    if (status_ && !(value >= min && value <= max)) {
      Fail(ErrorCode::kDataLoss, "key \"{}\" is {}, expected {} to {}", Key(name), value, min, max);
    }
    return value;
  }
  double NumberOr(std::string_view name, double min, double max, double otherwise) {
    return Has(name) ? Number(name, min, max) : otherwise;
  }

  std::string TextOr(std::string_view name, std::string otherwise) {
    return Has(name) ? Take(file_.String(Key(name))) : otherwise;
  }

 private:
  template <typename T>
  T Take(Result<T> result) {
    if (result) return std::move(*result);
    if (status_) status_ = tl::unexpected(result.error());
    return {};
  }

  const GgufFile& file_;
  std::string_view architecture_;
  Status status_;
};

// Factors a file may carry for llama3 scaling: one per pair.
void ReadFrequencyFactors(const GgufFile& file, KeyReader& keys, RopeParams& rope) {
  const GgufTensor* tensor = file.FindTensor("rope_freqs.weight");
  if (tensor == nullptr || !keys.GetStatus()) return;
  if (tensor->type != GGML_TYPE_F32 ||
      tensor->n_bytes != static_cast<uint64_t>(rope.n_dims / 2) * sizeof(float)) {
    return keys.Fail(
        ErrorCode::kDataLoss,
        "tensor \"rope_freqs.weight\" has dimensions [{}] of type {}, expected {} of f32",
        fmt::join(tensor->shape, ", "), GgmlTypeName(tensor->type), rope.n_dims / 2);
  }
  rope.frequency_factors.resize(static_cast<size_t>(rope.n_dims / 2));
  keys.Check(file.FileOf(*tensor).Read(tensor->offset,
                                       std::as_writable_bytes(std::span(rope.frequency_factors))));
  for (const float factor : rope.frequency_factors) {
    if (!(factor > 0.0f && std::isfinite(factor))) {
      return keys.Fail(ErrorCode::kDataLoss,
                       "tensor \"rope_freqs.weight\" holds {}, expected positive numbers", factor);
    }
  }
}

void ReadRopeScaling(KeyReader& keys, int n_context, RopeParams& rope) {
  // A file without a type but with a factor means linear; 0 stands for no factor.
  const double factor = keys.NumberOr("rope.scaling.factor", 0.0, 1e6,
                                      keys.NumberOr("rope.scale_linear", 0.0, 1e6, 0.0));
  const std::string type = keys.TextOr("rope.scaling.type", "linear");
  if (type == "none" || (type == "linear" && (factor == 0.0 || factor == 1.0))) {
    rope.scaling = RopeScaling::kNone;
  } else if (type == "linear") {
    rope.scaling = RopeScaling::kLinear;
    rope.factor = factor;
  } else if (type == "yarn") {
    rope.scaling = RopeScaling::kYarn;
    rope.factor = factor == 0.0 ? 1.0 : factor;
    rope.beta_fast = keys.NumberOr("rope.scaling.yarn_beta_fast", 0.0, 1e6, rope.beta_fast);
    rope.beta_slow = keys.NumberOr("rope.scaling.yarn_beta_slow", 0.0, 1e6, rope.beta_slow);
  } else {
    keys.Fail(ErrorCode::kUnsupported, "key \"{}\" is \"{}\", supported are none, linear and yarn",
              keys.Key("rope.scaling.type"), type);
  }
  rope.original_context =
      keys.CountOr("rope.scaling.original_context_length", kMaxContext, n_context);
  rope.attention_factor = keys.NumberOr("rope.scaling.attn_factor", 1e-6, 1e6, 1.0);
  for (const std::string_view name :
       {"rope.scaling.yarn_log_multiplier", "rope.scaling.yarn_ext_factor",
        "rope.scaling.yarn_attn_factor", "rope.scaling.alpha", "rope.dimension_sections"}) {
    if (keys.Has(name))
      keys.Fail(ErrorCode::kUnsupported, "key \"{}\" is set, which we do not support",
                keys.Key(name));
  }
  if (rope.scaling != RopeScaling::kYarn && rope.attention_factor != 1.0) {
    keys.Fail(ErrorCode::kUnsupported, "key \"{}\" is {} without yarn scaling",
              keys.Key("rope.scaling.attn_factor"), rope.attention_factor);
  }
}

void ReadRope(const GgufFile& file, KeyReader& keys, const ModelConfig& config, RopeParams& rope) {
  rope.pairs = TraitsOf(config.architecture).rope_pairs;
  rope.base = keys.NumberOr("rope.freq_base", 1.0, 1e12, rope.base);
  rope.n_dims = keys.CountOr("rope.dimension_count", config.head_dim, config.head_dim);
  if (rope.n_dims % 2 != 0) {
    keys.Fail(ErrorCode::kDataLoss, "key \"{}\" is {}, expected an even number",
              keys.Key("rope.dimension_count"), rope.n_dims);
  }
  ReadRopeScaling(keys, config.n_context, rope);
  ReadFrequencyFactors(file, keys, rope);
}

void CheckHeads(KeyReader& keys, const ModelConfig& config) {
  if (config.n_heads % config.n_kv_heads != 0) {
    keys.Fail(ErrorCode::kDataLoss, "key \"{}\" is {}, not a multiple of \"{}\", {}",
              keys.Key("attention.head_count"), config.n_heads, keys.Key("attention.head_count_kv"),
              config.n_kv_heads);
  }
  if (config.head_dim % 16 != 0 || config.head_dim > kernels::kMaxHeadDim) {
    keys.Fail(ErrorCode::kUnsupported,
              "heads have {} dimensions, supported are multiples of 16 up to {}", config.head_dim,
              kernels::kMaxHeadDim);
  }
  const int value_dim = keys.CountOr("attention.value_length", kMaxWidth, config.head_dim);
  if (value_dim != config.head_dim) {
    keys.Fail(ErrorCode::kUnsupported,
              "keys have {} dimensions and values {}, supported are equal ones", config.head_dim,
              value_dim);
  }
}

void CheckWidths(KeyReader& keys, const ModelConfig& config) {
  const auto check = [&](std::string_view what, int64_t width) {
    if (width % kDotUnit != 0 || width > kMaxWidth) {
      keys.Fail(ErrorCode::kUnsupported, "{} is {}, supported are multiples of {} up to {}", what,
                width, kDotUnit, kMaxWidth);
    }
  };
  check(keys.Key("embedding_length"), config.n_embd);
  check(keys.Key("feed_forward_length"), config.n_ffn);
  check("the width of all heads", int64_t{config.n_heads} * config.head_dim);
}

// The embedding says how many tokens there are; a tokenizer in the file must agree.
int ReadVocabSize(const GgufFile& file, KeyReader& keys) {
  const GgufTensor* embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr) {
    keys.Fail(ErrorCode::kDataLoss, "tensor \"token_embd.weight\" is missing");
    return 0;
  }
  const int64_t n_vocab = embedding->shape[1];
  if (n_vocab > kMaxVocab) {
    keys.Fail(ErrorCode::kDataLoss,
              "tensor \"token_embd.weight\" has {} rows, at most {} are allowed", n_vocab,
              kMaxVocab);
  }
  const GgufValue* tokens = file.Find("tokenizer.ggml.tokens");
  if (tokens != nullptr && tokens->n_elements != static_cast<uint64_t>(n_vocab)) {
    keys.Fail(
        ErrorCode::kDataLoss,
        "key \"tokenizer.ggml.tokens\" has {} elements, but tensor \"token_embd.weight\" {} rows",
        tokens->n_elements, n_vocab);
  }
  return static_cast<int>(n_vocab);
}

Result<const ArchitectureTraits*> ReadArchitecture(const GgufFile& file) {
  const Result<std::string> name = file.String("general.architecture");
  if (!name) return tl::unexpected(Error{ErrorCode::kDataLoss, name.error().message});
  std::vector<std::string_view> names;
  for (const ArchitectureTraits& traits : Architectures()) {
    if (traits.name == *name) return &traits;
    names.push_back(traits.name);
  }
  return MakeError(ErrorCode::kUnsupported,
                   "{}: architecture \"{}\" is not supported; these are: {}", file.Path(), *name,
                   fmt::join(names, ", "));
}

}  // namespace

Result<ModelConfig> ReadConfig(const GgufFile& file) {
  const Result<const ArchitectureTraits*> traits = ReadArchitecture(file);
  if (!traits) return tl::unexpected(traits.error());
  KeyReader keys(file, (*traits)->name);
  ModelConfig config;
  config.architecture = (*traits)->id;
  config.name = file.String("general.name").value_or("");
  config.n_layers = keys.Count("block_count", kMaxLayers);
  config.n_embd = keys.Count("embedding_length", kMaxWidth);
  config.n_ffn = keys.Count("feed_forward_length", kMaxWidth);
  config.n_heads = keys.Count("attention.head_count", kMaxHeads);
  config.n_kv_heads = keys.CountOr("attention.head_count_kv", kMaxHeads, config.n_heads);
  config.n_context = keys.Count("context_length", kMaxContext);
  config.norm_eps = static_cast<float>(keys.Number("attention.layer_norm_rms_epsilon", 0.0, 1.0));
  if (file.Integer(keys.Key("expert_count")).value_or(0) > 0) {
    keys.Fail(ErrorCode::kUnsupported,
              "the model is a mixture of experts, which we do not support");
  }
  VC_RETURN_IF_ERROR(keys.GetStatus());

  if (!keys.Has("attention.key_length") && config.n_embd % config.n_heads != 0) {
    keys.Fail(ErrorCode::kDataLoss, "key \"{}\" is {}, not a multiple of \"{}\", {}",
              keys.Key("embedding_length"), config.n_embd, keys.Key("attention.head_count"),
              config.n_heads);
  }
  config.head_dim = keys.CountOr("attention.key_length", kMaxWidth, config.n_embd / config.n_heads);
  VC_RETURN_IF_ERROR(keys.GetStatus());
  CheckHeads(keys, config);
  CheckWidths(keys, config);
  config.n_vocab = ReadVocabSize(file, keys);
  VC_RETURN_IF_ERROR(keys.GetStatus());
  ReadRope(file, keys, config, config.rope);
  VC_RETURN_IF_ERROR(keys.GetStatus());
  return config;
}

}  // namespace vericache::model
