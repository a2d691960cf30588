// Goal: each weight of a qwen3 is the tensor GGUF names for it, norms of q and k included.
// Method: a tiny model, tensor by tensor, its heads wider together than the model.

#include <gtest/gtest.h>

#include "model/architectures.h"
#include "tests/support/named_tensors.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using testing_support::AllRows;
using testing_support::ExpectLayerTensors;
using testing_support::ExpectTensor;
using testing_support::TinyModelFile;

TEST(Qwen3, NamesItsTensors) {
  const TinyModelFile tiny({.architecture = Architecture::kQwen3, .n_embd = 96, .is_tied = false});
  ThreadTeam team(1);
  const auto model = Model::Load(tiny.Path(), team);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto file = GgufFile::Open(tiny.Path());
  ASSERT_TRUE(file.has_value());
  ASSERT_NE(file->FindTensor("blk.1.attn_k_norm.weight"), nullptr);
  ExpectTensor(*file, "token_embd.weight", AllRows((*model)->GetWeights().embedding));
  ExpectTensor(*file, "output_norm.weight", (*model)->GetWeights().output_norm);
  ExpectTensor(*file, "output.weight", AllRows((*model)->GetWeights().output));
  for (size_t i = 0; i < 2; ++i) ExpectLayerTensors(*file, **model, i);
}

}  // namespace
}  // namespace vericache::model
