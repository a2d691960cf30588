// libllama as an independent engine: the logits it gives for a text, token by token known, and a
// copy of a model whose weights are dequantised to F32, which makes it the F32 arithmetic that both
// engines are measured against.
#pragma once

#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace vericache::testing_support {

enum class PeerKv : uint8_t { kF16, kF32 };

class LlamaPeer {
 public:
  LlamaPeer(const std::string& gguf_path, PeerKv kv, int n_context) {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    model_ = llama_model_load_from_file(gguf_path.c_str(), model_params);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(n_context);
    params.n_batch = static_cast<uint32_t>(n_context);
    params.n_ubatch = 512;
    // One: ggml's threads spin at its barriers, which beside other work costs twentyfold.
    params.n_threads = params.n_threads_batch = 1;
    const ggml_type type = kv == PeerKv::kF32 ? GGML_TYPE_F32 : GGML_TYPE_F16;
    params.type_k = params.type_v = type;
    params.flash_attn_type =
        kv == PeerKv::kF32 ? LLAMA_FLASH_ATTN_TYPE_DISABLED : LLAMA_FLASH_ATTN_TYPE_AUTO;
    context_ = model_ == nullptr ? nullptr : llama_init_from_model(model_, params);
  }
  ~LlamaPeer() {
    if (context_ != nullptr) llama_free(context_);
    if (model_ != nullptr) llama_model_free(model_);
  }
  LlamaPeer(const LlamaPeer&) = delete;
  LlamaPeer& operator=(const LlamaPeer&) = delete;

  bool IsReady() const { return context_ != nullptr; }

  // Starts a new text.
  void Clear() { llama_memory_clear(llama_get_memory(context_), true); }

  // Feeds tokens at positions [first, first + n) and returns their logits, [n, n_vocab].
  std::vector<float> Logits(std::span<const TokenId> tokens, int first) {
    const int n = static_cast<int>(tokens.size());
    llama_batch batch = llama_batch_init(n, 0, 1);
    for (int i = 0; i < n; ++i) {
      batch.token[i] = tokens[static_cast<size_t>(i)].value;
      batch.pos[i] = first + i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = 1;
    }
    batch.n_tokens = n;
    const int status = llama_decode(context_, batch);
    EXPECT_EQ(status, 0);
    const size_t n_vocab = static_cast<size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model_)));
    const float* logits = llama_get_logits(context_);
    std::vector<float> out(logits, logits + static_cast<size_t>(n) * n_vocab);
    llama_batch_free(batch);
    return out;
  }

 private:
  llama_model* model_ = nullptr;
  llama_context* context_ = nullptr;
};

// Writes a copy of a GGUF file with every tensor dequantised to F32 by ggml's own functions.
inline bool WriteF32Copy(const std::string& from, const std::string& to) {
  ggml_context* tensors = nullptr;
  gguf_context* source = gguf_init_from_file(from.c_str(), {.no_alloc = false, .ctx = &tensors});
  if (source == nullptr) return false;
  gguf_context* copy = gguf_init_empty();
  gguf_set_kv(copy, source);
  std::vector<ggml_context*> owned;
  for (ggml_tensor* t = ggml_get_first_tensor(tensors); t != nullptr;
       t = ggml_get_next_tensor(tensors, t)) {
    if (gguf_find_tensor(source, t->name) < 0) continue;  // the data blob itself
    const int64_t n = ggml_nelements(t);
    const size_t bytes = static_cast<size_t>(n) * sizeof(float) + 4096;
    ggml_context* arena = ggml_init({.mem_size = bytes, .mem_buffer = nullptr, .no_alloc = false});
    ggml_tensor* f32 = ggml_new_tensor(arena, GGML_TYPE_F32, ggml_n_dims(t), t->ne);
    ggml_set_name(f32, t->name);
    float* out = static_cast<float*>(f32->data);
    const ggml_type_traits* traits = ggml_get_type_traits(t->type);
    if (t->type == GGML_TYPE_F32) {
      std::copy_n(static_cast<const float*>(t->data), n, out);
    } else {
      traits->to_float(t->data, out, n);
    }
    gguf_add_tensor(copy, f32);
    owned.push_back(arena);
  }
  const bool is_written = gguf_write_to_file(copy, to.c_str(), false);
  for (ggml_context* arena : owned) ggml_free(arena);
  gguf_free(copy);
  gguf_free(source);
  ggml_free(tensors);
  return is_written;
}

}  // namespace vericache::testing_support
