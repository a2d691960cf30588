// Goal: each weight of a llama is the tensor GGUF names for it; biases are optional.
// Method: a tiny model, tensor by tensor; a qwen2 file renamed, which has biases.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/architectures.h"
#include "tests/support/named_tensors.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using testing_support::AllRows;
using testing_support::ExpectLayerTensors;
using testing_support::ExpectTensor;
using testing_support::TempFolder;
using testing_support::TinyModelFile;

void ExpectAllTensors(const std::string& path) {
  ThreadTeam team(1);
  const auto model = Model::Load(path, team);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.has_value());
  ExpectTensor(*file, "token_embd.weight", AllRows((*model)->GetWeights().embedding));
  ExpectTensor(*file, "output_norm.weight", (*model)->GetWeights().output_norm);
  ExpectTensor(*file, "output.weight", AllRows((*model)->GetWeights().output));
  for (size_t i = 0; i < (*model)->GetWeights().layers.size(); ++i)
    ExpectLayerTensors(*file, **model, i);
}

TEST(Llama, NamesItsTensors) { ExpectAllTensors(TinyModelFile({.is_tied = false}).Path()); }

TEST(Llama, MayHaveBiases) {
  const TempFolder folder;
  std::string bytes = testing_support::ReadBytes(
      TinyModelFile({.architecture = Architecture::kQwen2, .is_tied = false}).Path());
  for (size_t at = bytes.find("qwen2"); at != std::string::npos; at = bytes.find("qwen2", at))
    bytes.replace(at, 5, "llama");
  ExpectAllTensors(folder.Write("x.gguf", bytes));
}

}  // namespace
}  // namespace vericache::model
