// A seeded tiny model, written as a GGUF file by our own code: unit and identity tests without a
// download. It has a byte-level vocabulary and random weights; its text means nothing, its
// arithmetic everything.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/model.h"

namespace vericache::model {

struct TinyModelSpec {
  Architecture architecture = Architecture::kLlama;
  uint64_t seed = 1;
  int n_layers = 2;
  int n_heads = 4;
  int n_kv_heads = 2;
  int head_dim = 32;
  int n_embd = 0;  // 0: n_heads * head_dim
  int n_ffn = 128;
  int n_vocab = 320;  // >= 260: bytes and control tokens
  int n_context = 4096;
  std::string weight_type = "q8_0";  // a ggml type name
  bool is_tied = true;
  // Scale of the logits: larger separates the top tokens more clearly.
  float logit_scale = 4.0f;
  RopeScaling rope_scaling = RopeScaling::kNone;
  double rope_factor = 4.0;            // of linear and YaRN scaling
  bool has_frequency_factors = false;  // llama3 scaling: the tensor rope_freqs; llama only
};

// The same spec gives the same bytes, on any machine.
// Errors: kInvalidArgument for shapes the type cannot hold, kInternal if the file cannot be
// written.
Status WriteTinyModel(const TinyModelSpec& spec, const std::string& path);

}  // namespace vericache::model
