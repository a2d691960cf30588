// A loaded model: hyper-parameters and packed weights, immutable. One file per architecture names
// its tensors (llama.cc, qwen2.cc, qwen3.cc); the layer function in forward.cc reads like the
// paper.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "kv/geometry.h"

namespace vericache::model {

enum class Architecture : uint8_t { kLlama, kQwen2, kQwen3 };

enum class RopeScaling : uint8_t { kNone, kLinear, kYarn };

struct RopeParams {
  double base = 10000.0;
  int n_dims = 0;  // dimensions that turn; the rest pass through
  kernels::RopePairs pairs = kernels::RopePairs::kAdjacent;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;            // linear and YaRN
  int original_context = 0;       // YaRN
  double attention_factor = 1.0;  // YaRN: magnitude multiplier from the file, 1 if absent
  double beta_fast = 32.0;        // YaRN
  double beta_slow = 1.0;         // YaRN
  std::vector<float>
      frequency_factors;  // [n_dims/2] llama3 scaling (tensor rope_freqs); empty: all 1
};

struct ModelConfig {
  Architecture architecture = Architecture::kLlama;
  std::string name;
  int n_layers = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int n_embd = 0;
  int n_ffn = 0;
  int n_vocab = 0;
  int n_context = 0;  // trained context
  float norm_eps = 1e-5f;
  RopeParams rope;

  kv::KvShape Kv() const { return {n_layers, n_kv_heads, head_dim}; }
};

struct LayerWeights {
  std::vector<float> attn_norm;  // [n_embd]
  kernels::PackedMatrix wq, wk, wv, wo;
  std::vector<float> bq, bk, bv;      // empty if the architecture has none
  std::vector<float> q_norm, k_norm;  // [head_dim], of each head before RoPE; empty likewise
  std::vector<float> ffn_norm;
  kernels::PackedMatrix gate, up, down;
};

class Model {
 public:
  struct Weights {
    kernels::PackedMatrix embedding;  // [n_vocab, n_embd]; also the output matrix when tied
    std::vector<LayerWeights> layers;
    std::vector<float> output_norm;
    kernels::PackedMatrix output;  // n == 0 when tied
  };

  // Reads, validates and packs a GGUF file; packing is shared by the team.
  // Errors: kNotFound, kDataLoss, kUnsupported (with the architectures that work), each naming
  // file, tensor and value; kResourceExhausted if the memory cannot hold it.
  static Result<std::unique_ptr<Model>> Load(const std::string& path, ThreadTeam& team);

  const ModelConfig& Config() const { return config_; }
  const Weights& GetWeights() const { return weights_; }
  const kernels::PackedMatrix& OutputMatrix() const {
    return weights_.output.n > 0 ? weights_.output : weights_.embedding;
  }
  size_t WeightBytes() const;
  // Of them, what a pass reads: of an embedding table that is not the output matrix, a few rows.
  size_t PassWeightBytes() const;
  // Hex SHA-256 over hyper-parameters and tensor names, types, shapes and data: what identifies
  // this model in results.
  const std::string& Fingerprint() const { return fingerprint_; }

 private:
  ModelConfig config_;
  Weights weights_;
  std::string fingerprint_;
};

}  // namespace vericache::model
