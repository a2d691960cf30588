#include "model/architectures.h"

#include <fmt/format.h>

#include "base/check.h"

namespace vericache::model {
namespace {

constexpr ArchitectureTraits kArchitectures[] = {
    {Architecture::kLlama, "llama", kernels::RopePairs::kAdjacent, NameLlamaTensors},
    {Architecture::kQwen2, "qwen2", kernels::RopePairs::kHalves, NameQwen2Tensors},
    {Architecture::kQwen3, "qwen3", kernels::RopePairs::kHalves, NameQwen3Tensors},
};

}  // namespace

std::span<const ArchitectureTraits> Architectures() { return kArchitectures; }

const ArchitectureTraits& TraitsOf(Architecture id) {
  for (const ArchitectureTraits& traits : kArchitectures) {
    if (traits.id == id) return traits;
  }
  VC_CHECK(false, "architecture {}", static_cast<int>(id));
}

std::string LayerTensor(size_t layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

void NameCommonTensors(const ModelConfig& config, WeightLoader& loader, Model::Weights& weights) {
  const int n_q = config.n_heads * config.head_dim;
  const int n_kv = config.n_kv_heads * config.head_dim;
  loader.Matrix("token_embd.weight", config.n_vocab, config.n_embd, weights.embedding);
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    LayerWeights& layer = weights.layers[i];
    const auto name = [&](std::string_view tensor) { return LayerTensor(i, tensor); };
    loader.Vector(name("attn_norm.weight"), config.n_embd, layer.attn_norm);
    loader.Matrix(name("attn_q.weight"), n_q, config.n_embd, layer.wq);
    loader.Matrix(name("attn_k.weight"), n_kv, config.n_embd, layer.wk);
    loader.Matrix(name("attn_v.weight"), n_kv, config.n_embd, layer.wv);
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
