// The architectures we can run, one file each, in one list.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/model.h"
#include "model/weights.h"

namespace vericache::model {

struct ArchitectureTraits {
  Architecture id;
  std::string_view name;  // general.architecture, and the prefix of its keys
  kernels::RopePairs rope_pairs;
  // Asks for every tensor of the architecture.
  void (*name_tensors)(const ModelConfig& config, WeightLoader& loader, Model::Weights& weights);
};

std::span<const ArchitectureTraits> Architectures();
const ArchitectureTraits& TraitsOf(Architecture id);

// What all architectures here have: embedding, two norms and seven matrices a layer, output.
void NameCommonTensors(const ModelConfig& config, WeightLoader& loader, Model::Weights& weights);
// "blk.3.attn_q.bias"
std::string LayerTensor(size_t layer, std::string_view name);

void NameLlamaTensors(const ModelConfig& config, WeightLoader& loader,
                      Model::Weights& weights);  // llama.cc
void NameQwen2Tensors(const ModelConfig& config, WeightLoader& loader,
                      Model::Weights& weights);  // qwen2.cc
void NameQwen3Tensors(const ModelConfig& config, WeightLoader& loader,
                      Model::Weights& weights);  // qwen3.cc

}  // namespace vericache::model
