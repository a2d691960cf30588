// A literal scalar model: docs/numerics.md read line by line over the bytes of a GGUF file, one
// sequence, no packing, no tiles, no threads. The oracle of the forward pass; slow.
//
// It shares with src/ only the hyper-parameters and the rotation table.
#pragma once

#include <ggml.h>
#include <gguf.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/rope.h"
#include "tests/support/gguf_rows.h"
#include "tests/support/literal_attention.h"

namespace vericache::testing_support {

class LiteralModel {
 public:
  using Floats = std::vector<float>;

  LiteralModel(const std::string& path, const model::ModelConfig& config)
      : config_(config), rope_(config.rope) {
    ggml_context* shapes = nullptr;
    gguf_context* gguf = gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &shapes});
    if (gguf == nullptr) throw std::runtime_error("cannot read " + path);
    std::ifstream file(path, std::ios::binary);
    for (int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
      const char* name = gguf_get_tensor_name(gguf, i);
      const ggml_tensor* shape = ggml_get_tensor(shapes, name);
      std::vector<std::byte> bytes(gguf_get_tensor_size(gguf, i));
      file.seekg(static_cast<std::streamoff>(gguf_get_data_offset(gguf) +
                                             gguf_get_tensor_offset(gguf, i)));
      file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      if (std::string(name) == "token_embd.weight") {
        embedding_type_ = shape->type;
        embedding_bytes_ = bytes;
      }
      tensors_.emplace(name, Rows(*shape, std::move(bytes)));
    }
    gguf_free(gguf);
    ggml_free(shapes);
  }

  // Logits of every token of a sequence [tokens][n_vocab].
  std::vector<Floats> Logits(const std::vector<TokenId>& tokens) {
    rope_.Extend(static_cast<int>(tokens.size()));
    std::vector<Floats> x;
    for (const TokenId token : tokens) x.push_back(Embedding(token.value));
    for (int layer = 0; layer < config_.n_layers; ++layer) RunLayer(layer, x);
    const bool is_tied = !tensors_.contains("output.weight");
    std::vector<Floats> logits;
    for (const Floats& row : x) {
      logits.push_back(Multiply(is_tied ? "token_embd.weight" : "output.weight",
                                Norm("output_norm.weight", row)));
    }
    return logits;
  }

 private:
  static GgufRows Rows(const ggml_tensor& shape, std::vector<std::byte> bytes) {
    const int k = static_cast<int>(shape.ne[0]);
    const int n = static_cast<int>(shape.ne[1]);
    for (const WeightType type : kAllWeightTypes) {
      if (std::string(ggml_type_name(shape.type)) == LowerCase(Name(type))) {
        return GgufRows(type, n, k, std::move(bytes));
      }
    }
    // Any other type: dequantised by ggml's reference, then as F32.
    std::vector<std::byte> floats(static_cast<size_t>(n) * static_cast<size_t>(k) * sizeof(float));
    ggml_get_type_traits(shape.type)
        ->to_float(bytes.data(), reinterpret_cast<float*>(floats.data()), int64_t{n} * k);
    return GgufRows(WeightType::kF32, n, k, std::move(floats));
  }

  // As ggml spells it: "q4_K" keeps its capital.
  static std::string LowerCase(std::string name) {
    for (char& c : name) {
      if (c != 'K') c = static_cast<char>(std::tolower(c));
    }
    return name;
  }

  const GgufRows& Tensor(const std::string& name) const { return tensors_.at(name); }

  Floats Vector(const std::string& name) const {
    Floats x;
    for (int i = 0; i < Tensor(name).k(); ++i) x.push_back(Tensor(name).FloatWeight(0, i));
    return x;
  }

  // A dequantised row: ggml's reference says what that is.
  Floats Embedding(int token) const {
    Floats x(static_cast<size_t>(config_.n_embd));
    const size_t row_bytes = ggml_row_size(embedding_type_, config_.n_embd);
    const std::byte* row = embedding_bytes_.data() + static_cast<size_t>(token) * row_bytes;
    if (embedding_type_ == GGML_TYPE_F32) {
      std::memcpy(x.data(), row, row_bytes);
    } else {
      ggml_get_type_traits(embedding_type_)->to_float(row, x.data(), config_.n_embd);
    }
    return x;
  }

  Floats Multiply(const std::string& name, const Floats& x) const {
    return MultiplyLiterally(Tensor(name), x, 1);
  }

  Floats Norm(const std::string& name, const Floats& x) const {
    const Floats w = Vector(name);
    const float mean = SumOfSquaresLiterally(x.data(), x.size()) / static_cast<float>(x.size());
    const float inverse = 1.0f / std::sqrt(mean + config_.norm_eps);
    Floats y;
    for (size_t i = 0; i < x.size(); ++i) y.push_back((x[i] * inverse) * w[i]);
    return y;
  }

  // The heads of a projection, biased; rotated where the table is given.
  std::vector<Floats> Heads(const std::string& name, const Floats& h, const float* cos_sin) const {
    Floats y = Multiply(name + ".weight", h);
    if (tensors_.contains(name + ".bias")) {
      const Floats bias = Vector(name + ".bias");
      for (size_t i = 0; i < y.size(); ++i) y[i] = y[i] + bias[i];
    }
    const auto head_dim = static_cast<size_t>(config_.head_dim);
    std::vector<Floats> heads;
    for (size_t begin = 0; begin < y.size(); begin += head_dim) {
      Floats head(y.begin() + static_cast<std::ptrdiff_t>(begin),
                  y.begin() + static_cast<std::ptrdiff_t>(begin + head_dim));
      if (tensors_.contains(name + "_norm.weight")) head = Norm(name + "_norm.weight", head);
      if (cos_sin != nullptr) Turn(head, cos_sin);
      heads.push_back(std::move(head));
    }
    return heads;
  }

  void Turn(Floats& head, const float* cos_sin) const {
    const auto n_pairs = static_cast<size_t>(config_.rope.n_dims / 2);
    const bool is_adjacent = config_.rope.pairs == kernels::RopePairs::kAdjacent;
    for (size_t i = 0; i < n_pairs; ++i) {
      float& first = is_adjacent ? head[2 * i] : head[i];
      float& second = is_adjacent ? head[2 * i + 1] : head[i + n_pairs];
      const float x0 = first;
      const float x1 = second;
      const float c = cos_sin[i];
      const float s = cos_sin[n_pairs + i];
      first = std::fma(x0, c, -(x1 * s));
      second = std::fma(x1, c, x0 * s);
    }
  }

  void RunLayer(int layer, std::vector<Floats>& x) const {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const auto group = static_cast<size_t>(config_.n_heads / config_.n_kv_heads);
    std::vector<std::vector<LiteralSlot>> slots(static_cast<size_t>(config_.n_kv_heads));
    for (size_t t = 0; t < x.size(); ++t) {
      const float* cos_sin = rope_.CosSin(Position(static_cast<int>(t)));
      const Floats h = Norm(prefix + "attn_norm.weight", x[t]);
      const std::vector<Floats> q = Heads(prefix + "attn_q", h, cos_sin);
      const std::vector<Floats> k = Heads(prefix + "attn_k", h, cos_sin);
      const std::vector<Floats> v = Heads(prefix + "attn_v", h, nullptr);
      for (size_t head = 0; head < slots.size(); ++head) {
        slots[head].push_back({.key = EncodeLiterally(k[head].data(), k[head].size(), false),
                               .value = EncodeLiterally(v[head].data(), v[head].size(), true)});
      }
      Floats heads;
      for (size_t head = 0; head < q.size(); ++head) {
        const Floats out = AttendLiterally(q[head], {slots[head / group]});
        heads.insert(heads.end(), out.begin(), out.end());
      }
      AddTo(x[t], Multiply(prefix + "attn_output.weight", heads));

      const Floats h2 = Norm(prefix + "ffn_norm.weight", x[t]);
      Floats gated = Multiply(prefix + "ffn_gate.weight", h2);
      const Floats up = Multiply(prefix + "ffn_up.weight", h2);
      for (size_t i = 0; i < gated.size(); ++i) gated[i] = (gated[i] * Sigmoid(gated[i])) * up[i];
      AddTo(x[t], Multiply(prefix + "ffn_down.weight", gated));
    }
  }

  static float Sigmoid(float x) {
    const float e = Exp2Literally(-std::fabs(x) * 0x1.715476p+0f);
    return x >= 0.0f ? 1.0f / (1.0f + e) : e / (1.0f + e);
  }

  static void AddTo(Floats& x, const Floats& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] + y[i];
  }

  model::ModelConfig config_;
  model::RopeTable rope_;
  std::map<std::string, GgufRows> tensors_;
  ggml_type embedding_type_ = GGML_TYPE_F32;
  std::vector<std::byte> embedding_bytes_;
};

}  // namespace vericache::testing_support
