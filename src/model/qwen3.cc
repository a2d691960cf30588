// qwen3: Qwen3, dense. RoPE turns halves; no bias; every head of q and k is normed before RoPE.
// Source: Yang et al. 2025 (arXiv:2505.09388), section 2; tensor names of GGUF.
#include "model/architectures.h"

namespace vericache::model {

void NameQwen3Tensors(const ModelConfig& config, WeightLoader& loader, Model::Weights& weights) {
  NameCommonTensors(config, loader, weights);
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    LayerWeights& layer = weights.layers[i];
    loader.Vector(LayerTensor(i, "attn_q_norm.weight"), config.head_dim, layer.q_norm);
    loader.Vector(LayerTensor(i, "attn_k_norm.weight"), config.head_dim, layer.k_norm);
  }
}

}  // namespace vericache::model
