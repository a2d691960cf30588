#include "model/tiny_model.h"

#include <fmt/ranges.h>
#include <ggml.h>
#include <gguf.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>

#include "model/architectures.h"
#include "model/llama_log.h"
#include "model/tiny_vocab.h"

namespace vericache::model {
namespace {

// Scales that keep the model alive: the state has a standard deviation near 1 before each norm,
// scores are peaked enough that the next token depends on a handful of earlier ones (neither on all
// alike nor on one), and the embedding of the current token is a small part of the last state, or a
// tied output would only repeat it.
constexpr float kScoreDeviation = 2.5f;
constexpr float kEmbeddingDeviation = 0.1f;
constexpr float kAttentionGain = 2.0f;  // gives back what averaging over values takes
constexpr float kKeyBiasShare = 0.3f;   // biases of q and k, relative to q and k
constexpr float kValueBias = 0.1f;
constexpr float kNormSpread = 0.1f;  // norm weights are 1 with this deviation

constexpr ggml_type kWritableTypes[] = {
    GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q8_0,   GGML_TYPE_Q4_0,
    GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q4_K,   GGML_TYPE_Q5_K,
    GGML_TYPE_Q6_K, GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS};

struct GgufDeleter {
  void operator()(gguf_context* gguf) const { gguf_free(gguf); }
};
struct GgmlDeleter {
  void operator()(ggml_context* ggml) const { ggml_free(ggml); }
};

// Numbers of mean 0 and deviation 1: four 16-bit uniforms summed, the same on every machine.
class NormalNoise {
 public:
  NormalNoise(uint64_t seed, std::string_view name) : state_(seed) {
    for (const char c : name)
      state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001b3u;  // FNV-1a
  }
  float Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;  // splitmix64
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const uint64_t sum = (z & 0xffffu) + (z >> 16 & 0xffffu) + (z >> 32 & 0xffffu) + (z >> 48);
    return (static_cast<float>(sum) - 131070.0f) * (1.0f / 37837.0f);
  }

 private:
  uint64_t state_;
};

// What a tensor's values look like.
struct Values {
  float mean = 0.0f;
  float deviation = 1.0f;
};

class TinyModelWriter {
 public:
  TinyModelWriter(const TinyModelSpec& spec, ggml_type weight_type)
      : spec_(spec),
        weight_type_(weight_type),
        architecture_(TraitsOf(spec.architecture).name),
        n_embd_(spec.n_embd > 0 ? spec.n_embd : spec.n_heads * spec.head_dim),
        gguf_(gguf_init_empty()),
        ggml_(ggml_init(
            {.mem_size = ggml_tensor_overhead() * static_cast<size_t>(spec.n_layers * 16 + 16),
             .mem_buffer = nullptr,
             .no_alloc = true})) {}

  Status Write(const std::string& path) {
    WriteKeys();
    WriteTokenizer();
    WriteTensors();
    const LlamaErrors errors;
    if (!gguf_write_to_file(gguf_.get(), path.c_str(), false)) {
      return MakeError(ErrorCode::kInternal, "{}: cannot be written: {}", path,
                       errors.Text("no reason given"));
    }
    return {};
  }

 private:
  std::string Key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  void SetText(const std::string& key, const std::string& text) {
    gguf_set_val_str(gguf_.get(), key.c_str(), text.c_str());
  }
  void SetCount(const std::string& key, int value) {
    gguf_set_val_u32(gguf_.get(), key.c_str(), static_cast<uint32_t>(value));
  }
  void SetNumber(const std::string& key, double value) {
    gguf_set_val_f32(gguf_.get(), key.c_str(), static_cast<float>(value));
  }
  void SetTexts(const std::string& key, const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    gguf_set_arr_str(gguf_.get(), key.c_str(), pointers.data(), pointers.size());
  }

  void WriteKeys() {
    SetText("general.architecture", std::string(architecture_));
    SetText("general.name", fmt::format("tiny {} {}", architecture_, spec_.seed));
    SetCount(Key("block_count"), spec_.n_layers);
    SetCount(Key("context_length"), spec_.n_context);
    SetCount(Key("embedding_length"), n_embd_);
    SetCount(Key("feed_forward_length"), spec_.n_ffn);
    SetCount(Key("attention.head_count"), spec_.n_heads);
    SetCount(Key("attention.head_count_kv"), spec_.n_kv_heads);
    if (spec_.n_heads * spec_.head_dim != n_embd_) {
      SetCount(Key("attention.key_length"), spec_.head_dim);
      SetCount(Key("attention.value_length"), spec_.head_dim);
    }
    SetCount(Key("rope.dimension_count"), spec_.head_dim);
    SetNumber(Key("rope.freq_base"), 10000.0);
    SetNumber(Key("attention.layer_norm_rms_epsilon"), 1e-5);
    if (spec_.rope_scaling == RopeScaling::kNone) return;
    SetText(Key("rope.scaling.type"),
            spec_.rope_scaling == RopeScaling::kLinear ? "linear" : "yarn");
    SetNumber(Key("rope.scaling.factor"), spec_.rope_factor);
    SetCount(Key("rope.scaling.original_context_length"), std::max(1, spec_.n_context / 4));
  }

  void WriteTokenizer() {
    const TinyVocab vocab = MakeTinyVocab(spec_.n_vocab);
    SetText("tokenizer.ggml.model", "gpt2");
    SetText("tokenizer.ggml.pre", spec_.architecture == Architecture::kLlama ? "smollm" : "qwen2");
    SetTexts("tokenizer.ggml.tokens", vocab.tokens);
    gguf_set_arr_data(gguf_.get(), "tokenizer.ggml.token_type", GGUF_TYPE_INT32, vocab.types.data(),
                      vocab.types.size());
    SetTexts("tokenizer.ggml.merges", vocab.merges);
    SetCount("tokenizer.ggml.bos_token_id", kTinyEndOfText);
    SetCount("tokenizer.ggml.eos_token_id", kTinyTurnEnd);
    SetCount("tokenizer.ggml.padding_token_id", kTinyPad);
    gguf_set_val_bool(gguf_.get(), "tokenizer.ggml.add_bos_token", false);
    SetText("tokenizer.chat_template", kTinyChatTemplate);
  }

  void WriteTensors() {
    const int n_q = spec_.n_heads * spec_.head_dim;
    const int n_kv = spec_.n_kv_heads * spec_.head_dim;
    const float query =
        std::sqrt(kScoreDeviation);  // deviation of q and of k; their product's is the score's
    const Values norm{1.0f, kNormSpread};
    Matrix("token_embd.weight", spec_.n_vocab, n_embd_, kEmbeddingDeviation);
    for (int layer = 0; layer < spec_.n_layers; ++layer) {
      const auto name = [&](std::string_view tensor) {
        return fmt::format("blk.{}.{}", layer, tensor);
      };
      Vector(name("attn_norm.weight"), n_embd_, norm);
      Matrix(name("attn_q.weight"), n_q, n_embd_, query * Unit(n_embd_));
      Matrix(name("attn_k.weight"), n_kv, n_embd_, query * Unit(n_embd_));
      Matrix(name("attn_v.weight"), n_kv, n_embd_, Unit(n_embd_));
      if (spec_.architecture == Architecture::kQwen2) {
        Vector(name("attn_q.bias"), n_q, {0.0f, kKeyBiasShare * query});
        Vector(name("attn_k.bias"), n_kv, {0.0f, kKeyBiasShare * query});
        Vector(name("attn_v.bias"), n_kv, {0.0f, kValueBias});
      }
      if (spec_.architecture == Architecture::kQwen3) {
        Vector(name("attn_q_norm.weight"), spec_.head_dim, {query, kNormSpread});
        Vector(name("attn_k_norm.weight"), spec_.head_dim, {query, kNormSpread});
      }
      Matrix(name("attn_output.weight"), n_embd_, n_q, kAttentionGain * Unit(n_q));
      Vector(name("ffn_norm.weight"), n_embd_, norm);
      Matrix(name("ffn_gate.weight"), spec_.n_ffn, n_embd_, Unit(n_embd_));
      Matrix(name("ffn_up.weight"), spec_.n_ffn, n_embd_, Unit(n_embd_));
      Matrix(name("ffn_down.weight"), n_embd_, spec_.n_ffn, Unit(spec_.n_ffn));
    }
    // The last norm's weight sets the deviation of the logits.
    const float gain = spec_.logit_scale * Unit(n_embd_) / kEmbeddingDeviation;
    Vector("output_norm.weight", n_embd_, {gain, kNormSpread * gain});
    if (!spec_.is_tied) Matrix("output.weight", spec_.n_vocab, n_embd_, kEmbeddingDeviation);
    if (spec_.has_frequency_factors) FrequencyFactors();
  }

  static float Unit(int n) { return 1.0f / std::sqrt(static_cast<float>(n)); }

  void Matrix(const std::string& name, int n_rows, int n_columns, float deviation) {
    Add(name, weight_type_, {n_columns, n_rows},
        Noise(name, int64_t{n_rows} * n_columns, {0.0f, deviation}));
  }
  void Vector(const std::string& name, int n, Values values) {
    Add(name, GGML_TYPE_F32, {n, 1}, Noise(name, n, values));
  }

  // 1 for fast pairs, 8 for slow ones, as llama3 scaling has it.
  void FrequencyFactors() {
    const int n_pairs = spec_.head_dim / 2;
    std::vector<float> factors;
    for (int i = 0; i < n_pairs; ++i)
      factors.push_back(1.0f + 7.0f * static_cast<float>(i) / static_cast<float>(n_pairs));
    Add("rope_freqs.weight", GGML_TYPE_F32, {n_pairs, 1}, factors);
  }

  std::vector<float> Noise(const std::string& name, int64_t n, Values values) const {
    NormalNoise noise(spec_.seed, name);
    std::vector<float> out(static_cast<size_t>(n));
    for (float& value : out) value = values.mean + values.deviation * noise.Next();
    return out;
  }

  void Add(const std::string& name, ggml_type type, std::array<int64_t, 2> shape,
           const std::vector<float>& values) {
    const int n_dims = shape[1] == 1 ? 1 : 2;
    ggml_tensor* tensor = ggml_new_tensor(ggml_.get(), type, n_dims, shape.data());
    ggml_set_name(tensor, name.c_str());
    std::vector<std::byte> bytes(ggml_nbytes(tensor));
    ggml_quantize_chunk(type, values.data(), bytes.data(), 0, shape[1], shape[0], nullptr);
    tensor->data = storage_.emplace_back(std::move(bytes)).data();
    gguf_add_tensor(gguf_.get(), tensor);
  }

  const TinyModelSpec& spec_;
  ggml_type weight_type_;
  std::string_view architecture_;
  int n_embd_;
  std::unique_ptr<gguf_context, GgufDeleter> gguf_;
  std::unique_ptr<ggml_context, GgmlDeleter> ggml_;
  std::vector<std::vector<std::byte>> storage_;
};

Result<ggml_type> WritableType(std::string_view name) {
  const auto matches = [&](ggml_type type) {
    const std::string_view known = GgmlTypeName(type);
    return std::equal(
        known.begin(), known.end(), name.begin(), name.end(),
        [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
  };
  std::vector<std::string_view> names;
  for (const ggml_type type : kWritableTypes) {
    if (matches(type)) return type;
    names.push_back(GgmlTypeName(type));
  }
  return MakeError(ErrorCode::kInvalidArgument, "weight type \"{}\" is not one of {}", name,
                   fmt::join(names, ", "));
}

Status CheckSpec(const TinyModelSpec& spec, ggml_type type) {
  for (const int count :
       {spec.n_layers, spec.n_heads, spec.n_kv_heads, spec.head_dim, spec.n_ffn, spec.n_context}) {
    if (count < 1)
      return MakeError(ErrorCode::kInvalidArgument, "a tiny model cannot have {} of anything",
                       count);
  }
  if (spec.n_vocab < kTinyMinVocab) {
    return MakeError(ErrorCode::kInvalidArgument, "n_vocab = {}, a tiny model needs at least {}",
                     spec.n_vocab, kTinyMinVocab);
  }
  if (spec.has_frequency_factors && spec.architecture != Architecture::kLlama) {
    return MakeError(ErrorCode::kInvalidArgument, "only llama has frequency factors");
  }
  const int64_t block = ggml_blck_size(type);
  for (const int n_inputs : {spec.n_heads * spec.head_dim, spec.n_embd, spec.n_ffn}) {
    if (n_inputs < 0 || n_inputs % block != 0) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "{} holds rows of a multiple of {} weights, not {}", GgmlTypeName(type),
                       block, n_inputs);
    }
  }
  return {};
}

}  // namespace

Status WriteTinyModel(const TinyModelSpec& spec, const std::string& path) {
  const Result<ggml_type> type = WritableType(spec.weight_type);
  if (!type) return tl::unexpected(type.error());
  VC_RETURN_IF_ERROR(CheckSpec(spec, *type));
  return TinyModelWriter(spec, *type).Write(path);
}

}  // namespace vericache::model
