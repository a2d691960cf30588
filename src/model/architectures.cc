#include "model/architectures.h"

#include "base/check.h"

namespace vericache::model {
namespace {

constexpr ArchitectureTraits kArchitectures[] = {
    {Architecture::kLlama, "llama", kernels::RopePairs::kAdjacent, NameLlamaTensors},
    {Architecture::kQwen2, "qwen2", kernels::RopePairs::kHalves, NameQwen2Tensors},
};

}  // namespace

std::span<const ArchitectureTraits> Architectures() { return kArchitectures; }

const ArchitectureTraits& TraitsOf(Architecture id) {
  for (const ArchitectureTraits& traits : kArchitectures) {
    if (traits.id == id) return traits;
  }
  VC_CHECK(false, "architecture {}", static_cast<int>(id));
}

}  // namespace vericache::model
