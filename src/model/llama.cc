// llama: Llama 2 and 3, Mistral, SmolLM2. RoPE turns adjacent pairs; projections may have a bias.
// Source: Touvron et al. 2023 (arXiv:2307.09288), section 2.2; tensor names of GGUF.
#include <fmt/format.h>

#include "model/architectures.h"

namespace vericache::model {

void NameLlamaTensors(const ModelConfig& config, WeightLoader& loader, Model::Weights& weights) {
  const int n_q = config.n_heads * config.head_dim;
  const int n_kv = config.n_kv_heads * config.head_dim;
  loader.Matrix("token_embd.weight", config.n_vocab, config.n_embd, weights.embedding);
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    LayerWeights& layer = weights.layers[i];
    const auto name = [&](std::string_view tensor) { return fmt::format("blk.{}.{}", i, tensor); };
    loader.Vector(name("attn_norm.weight"), config.n_embd, layer.attn_norm);
    loader.Matrix(name("attn_q.weight"), n_q, config.n_embd, layer.wq);
    loader.Matrix(name("attn_k.weight"), n_kv, config.n_embd, layer.wk);
    loader.Matrix(name("attn_v.weight"), n_kv, config.n_embd, layer.wv);
    loader.OptionalVector(name("attn_q.bias"), n_q, layer.bq);
    loader.OptionalVector(name("attn_k.bias"), n_kv, layer.bk);
    loader.OptionalVector(name("attn_v.bias"), n_kv, layer.bv);
    loader.Matrix(name("attn_output.weight"), config.n_embd, n_q, layer.wo);
    loader.Vector(name("ffn_norm.weight"), config.n_embd, layer.ffn_norm);
    loader.Matrix(name("ffn_gate.weight"), config.n_ffn, config.n_embd, layer.gate);
    loader.Matrix(name("ffn_up.weight"), config.n_ffn, config.n_embd, layer.up);
    loader.Matrix(name("ffn_down.weight"), config.n_embd, config.n_ffn, layer.down);
  }
  loader.Vector("output_norm.weight", config.n_embd, weights.output_norm);
  loader.OptionalMatrix("output.weight", config.n_vocab, config.n_embd, weights.output);
}

}  // namespace vericache::model
