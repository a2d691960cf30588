// llama: Llama 2 and 3, Mistral, SmolLM2. RoPE turns adjacent pairs; projections may have a bias.
// Source: Touvron et al. 2023 (arXiv:2307.09288), section 2.2; tensor names of GGUF.
#include "model/architectures.h"

namespace vericache::model {

void NameLlamaTensors(const ModelConfig& config, WeightLoader& loader, Model::Weights& weights) {
  NameCommonTensors(config, loader, weights);
  const int n_q = config.n_heads * config.head_dim;
  const int n_kv = config.n_kv_heads * config.head_dim;
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    LayerWeights& layer = weights.layers[i];
    loader.OptionalVector(LayerTensor(i, "attn_q.bias"), n_q, layer.bq);
    loader.OptionalVector(LayerTensor(i, "attn_k.bias"), n_kv, layer.bk);
    loader.OptionalVector(LayerTensor(i, "attn_v.bias"), n_kv, layer.bv);
  }
}

}  // namespace vericache::model
