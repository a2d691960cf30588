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

void NameLlamaTensors(const ModelConfig& config, WeightLoader& loader,
                      Model::Weights& weights);  // llama.cc
void NameQwen2Tensors(const ModelConfig& config, WeightLoader& loader,
                      Model::Weights& weights);  // qwen2.cc

}  // namespace vericache::model
