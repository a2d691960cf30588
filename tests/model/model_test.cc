// Goal: a model loads the same whatever the team; every tensor of its architecture is needed, no
// other is allowed.
// Method: tiny models of both architectures; files with a tensor renamed.

#include "model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/gguf_file.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using ::testing::HasSubstr;
using testing_support::AllArchitectures;
using testing_support::ReadBytes;
using testing_support::TempFolder;
using testing_support::TinyModelFile;

Result<std::unique_ptr<Model>> Load(const std::string& path, int n_threads = 2) {
  ThreadTeam team(n_threads);
  return Model::Load(path, team);
}

TEST(Model, LoadsEveryArchitecture) {
  for (const Architecture architecture : AllArchitectures()) {
    for (const bool is_tied : {true, false}) {
      const TinyModelFile tiny({.architecture = architecture, .n_layers = 3, .is_tied = is_tied});
      const auto loaded = Load(tiny.Path());
      ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
      const Model& model = **loaded;
      EXPECT_EQ(model.Config().architecture, architecture);
      EXPECT_EQ(model.Config().n_layers, 3);
      const Model::Weights& weights = model.GetWeights();
      ASSERT_EQ(weights.layers.size(), 3u);
      EXPECT_EQ(weights.embedding.n, 320);
      EXPECT_EQ(&model.OutputMatrix(), is_tied ? &weights.embedding : &weights.output);
      EXPECT_EQ(weights.layers[2].wk.n, 64);
      EXPECT_EQ(weights.layers[2].down.k, 128);
      EXPECT_EQ(weights.layers[2].bq.size(), architecture == Architecture::kQwen2 ? 128u : 0u);
      EXPECT_EQ(weights.layers[2].bv.size(), architecture == Architecture::kQwen2 ? 64u : 0u);
      EXPECT_GE(model.WeightBytes(), std::filesystem::file_size(tiny.Path()) / 2);
    }
  }
}

TEST(Model, LoadsTheSameWithAnyTeam) {
  const TinyModelFile tiny({.n_vocab = 1000});
  const auto one = Load(tiny.Path(), 1);
  const auto three = Load(tiny.Path(), 3);
  ASSERT_TRUE(one.has_value() && three.has_value());
  const kernels::PackedMatrix& a = (*one)->GetWeights().embedding;
  const kernels::PackedMatrix& b = (*three)->GetWeights().embedding;
  ASSERT_EQ(a.data.size(), b.data.size());
  EXPECT_EQ(std::memcmp(a.data.data(), b.data.data(), a.data.size()), 0);
  EXPECT_EQ((*one)->Fingerprint(), (*three)->Fingerprint());
}

TEST(Model, EveryTensorIsNeededAndNoOtherAllowed) {
  const TempFolder folder;
  for (const Architecture architecture : AllArchitectures()) {
    const TinyModelFile tiny({.architecture = architecture, .n_layers = 1});
    const std::string good = ReadBytes(tiny.Path());
    const auto file = GgufFile::Open(tiny.Path());
    ASSERT_TRUE(file.has_value());
    for (const GgufTensor& tensor : file->Tensors()) {
      std::string bad = good;
      bad[bad.find(tensor.name)] = 'X';
      const auto loaded = Load(folder.Write("bad.gguf", bad));
      ASSERT_FALSE(loaded.has_value()) << tensor.name;
      EXPECT_EQ(loaded.error().code, ErrorCode::kDataLoss);
      EXPECT_THAT(loaded.error().message, HasSubstr("\"" + tensor.name + "\" is missing"));
    }
  }
}

TEST(Model, ATiedModelWithAnUnknownTensorIsRefused) {
  const TempFolder folder;
  const TinyModelFile tiny({.n_layers = 1, .is_tied = false});
  std::string bytes = ReadBytes(tiny.Path());
  // The name of its own, not the end of "blk.0.attn_output.weight": behind its length.
  const size_t at = bytes.find(std::string("\x0d\0\0\0\0\0\0\0output.weight", 21));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 8] = 'X';
  const auto loaded = Load(folder.Write("bad.gguf", bytes));
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(loaded.error().message, HasSubstr("\"Xutput.weight\" is not part of"));
}

TEST(Model, NanInAWeightIsNoErrorOfLoading) {
  const TempFolder folder;
  const TinyModelFile tiny;
  std::string bytes = ReadBytes(tiny.Path());
  const auto file = GgufFile::Open(tiny.Path());
  const float nan = std::nanf("");
  std::memcpy(bytes.data() + file->FindTensor("blk.0.attn_norm.weight")->offset, &nan, sizeof nan);
  const auto loaded = Load(folder.Write("nan.gguf", bytes));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_TRUE(std::isnan((*loaded)->GetWeights().layers[0].attn_norm[0]));
}

TEST(Model, PassesOnWhyAFileCannotBeRead) {
  EXPECT_EQ(Load("/nowhere/model.gguf").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace vericache::model
