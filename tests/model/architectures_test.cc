// Goal: the list of architectures is complete and consistent.
// Method: every entry is looked up by its id.

#include "model/architectures.h"

#include <gtest/gtest.h>

namespace vericache::model {
namespace {

TEST(Architectures, AreFoundByTheirId) {
  for (const ArchitectureTraits& traits : Architectures()) {
    EXPECT_EQ(&TraitsOf(traits.id), &traits);
    EXPECT_FALSE(traits.name.empty());
    EXPECT_NE(traits.name_tensors, nullptr);
  }
  EXPECT_EQ(TraitsOf(Architecture::kLlama).rope_pairs, kernels::RopePairs::kAdjacent);
  EXPECT_EQ(TraitsOf(Architecture::kQwen2).rope_pairs, kernels::RopePairs::kHalves);
  EXPECT_EQ(TraitsOf(Architecture::kQwen3).rope_pairs, kernels::RopePairs::kHalves);
}

}  // namespace
}  // namespace vericache::model
