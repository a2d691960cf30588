// qwen2: Qwen2, Qwen2.5 and their coders. RoPE turns halves; q, k and v have a bias.
// Source: Yang et al. 2024 (arXiv:2407.10671), section 2.2; tensor names of GGUF.
#include "model/architectures.h"

namespace vericache::model {

void NameQwen2Tensors(const ModelConfig& config, WeightLoader& loader, Model::Weights& weights) {
  NameCommonTensors(config, loader, weights);
  const int n_q = config.n_heads * config.head_dim;
  const int n_kv = config.n_kv_heads * config.head_dim;
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    LayerWeights& layer = weights.layers[i];
    loader.Vector(LayerTensor(i, "attn_q.bias"), n_q, layer.bq);
    loader.Vector(LayerTensor(i, "attn_k.bias"), n_kv, layer.bk);
    loader.Vector(LayerTensor(i, "attn_v.bias"), n_kv, layer.bv);
  }
}

}  // namespace vericache::model
