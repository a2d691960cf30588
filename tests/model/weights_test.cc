// Goal: what is packed is what the file holds, for every type; what cannot be is refused by
// name.
// Method: each matrix of a tiny model dequantised by us and by ggml from the file's bytes,
// compared in every bit; damaged requests.

#include "model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/named_tensors.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::AllRows;
using testing_support::DequantizedByGgml;
using testing_support::GgufBytes;
using testing_support::TempFolder;
using testing_support::TinyModelFile;

class WeightsOfType : public ::testing::TestWithParam<std::string> {};

TEST_P(WeightsOfType, ArePackedAsTheFileHoldsThem) {
  // 330 tokens: the last panel of the embedding is not full.
  const TinyModelFile tiny(
      {.n_layers = 1, .head_dim = 64, .n_ffn = 512, .n_vocab = 330, .weight_type = GetParam()});
  const auto file = GgufFile::Open(tiny.Path());
  ASSERT_TRUE(file.has_value());
  WeightLoader loader(*file);
  std::map<std::string, kernels::PackedMatrix> matrices;
  std::map<std::string, std::vector<float>> vectors;
  for (const GgufTensor& tensor : file->Tensors()) {
    const int n_columns = static_cast<int>(tensor.shape[0]);
    const int n_rows = static_cast<int>(tensor.shape[1]);
    if (n_rows == 1) {
      loader.Vector(tensor.name, n_columns, vectors[tensor.name]);
    } else {
      loader.Matrix(tensor.name, n_rows, n_columns, matrices[tensor.name]);
    }
  }
  ThreadTeam team(2);
  const auto digests = loader.Load(team);
  ASSERT_TRUE(digests.has_value()) << digests.error().message;
  EXPECT_EQ(digests->size(), file->Tensors().size());
  for (const GgufTensor& tensor : file->Tensors()) {
    SCOPED_TRACE(tensor.name);
    const std::vector<float> expected = DequantizedByGgml(*file, tensor);
    const std::vector<float> values =
        tensor.shape[1] == 1 ? vectors[tensor.name] : AllRows(matrices[tensor.name]);
    ASSERT_EQ(values.size(), expected.size());
    EXPECT_EQ(std::memcmp(values.data(), expected.data(), expected.size() * sizeof(float)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, WeightsOfType,
                         ::testing::Values("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0",
                                           "q5_1", "q4_K", "q5_K", "q6_K", "q2_K", "q3_K", "iq4_nl",
                                           "iq4_xs"),
                         [](const auto& type) { return type.param; });

class WeightLoaderTest : public ::testing::Test {
 protected:
  WeightLoaderTest() : file_(GgufFile::Open(tiny_.Path()).value()), loader_(file_) {}
  Error Failure() {
    const auto loaded = loader_.Load(team_);
    return loaded ? Error{} : loaded.error();
  }

  TinyModelFile tiny_;
  GgufFile file_;
  WeightLoader loader_;
  ThreadTeam team_{2};
  kernels::PackedMatrix matrix_;
  std::vector<float> vector_;
};

TEST_F(WeightLoaderTest, NamesAMissingTensor) {
  loader_.Matrix("blk.0.attn_q.weight", 128, 128, matrix_);
  loader_.Matrix("blk.7.attn_q.weight", 128, 128, matrix_);
  loader_.Vector("another", 1, vector_);  // the first error stays
  const Error error = Failure();
  EXPECT_EQ(error.code, ErrorCode::kDataLoss);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("tiny.gguf"), HasSubstr("\"blk.7.attn_q.weight\" is missing")));
}

TEST_F(WeightLoaderTest, NamesAnotherShape) {
  loader_.Matrix("blk.0.attn_q.weight", 128, 64, matrix_);
  const Error error = Failure();
  EXPECT_EQ(error.code, ErrorCode::kDataLoss);
  EXPECT_THAT(error.message, HasSubstr("dimensions [128, 128, 1, 1], expected [64, 128, 1, 1]"));
}

TEST_F(WeightLoaderTest, RefusesATensorNobodyAskedFor) {
  loader_.Vector("output_norm.weight", 128, vector_);
  const Error error = Failure();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("token_embd.weight"));
}

TEST_F(WeightLoaderTest, LeavesOptionalTensorsEmpty) {
  loader_.OptionalVector("blk.0.attn_q.bias", 128, vector_);
  loader_.OptionalMatrix("output.weight", 320, 128, matrix_);
  EXPECT_EQ(Failure().code, ErrorCode::kUnsupported);  // for the others, which nobody asked for
  EXPECT_TRUE(vector_.empty());
  EXPECT_EQ(matrix_.n, 0);
}

TEST(WeightLoader, RefusesATypeThatHoldsNoWeights) {
  const TempFolder folder;
  GgufBytes gguf(1, 0);
  gguf.Tensor("t", {16, 2}, GGML_TYPE_I32).PadTo(32).Zeros(128);
  const auto file = GgufFile::Open(folder.Write("x.gguf", gguf.Bytes()));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  WeightLoader loader(*file);
  kernels::PackedMatrix matrix;
  loader.Matrix("t", 2, 16, matrix);
  ThreadTeam team(1);
  const auto loaded = loader.Load(team);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(loaded.error().message, HasSubstr("type i32"));
}

TEST_F(WeightLoaderTest, SaysThatTheFileWasCutWhileItLoaded) {
  for (const GgufTensor& tensor : file_.Tensors()) {
    if (tensor.shape[1] == 1) {
      loader_.Vector(tensor.name, static_cast<int>(tensor.shape[0]), vector_);
    } else {
      loader_.Matrix(tensor.name, static_cast<int>(tensor.shape[1]),
                     static_cast<int>(tensor.shape[0]), matrix_);
    }
  }
  std::filesystem::resize_file(tiny_.Path(), file_.Tensors().back().offset);
  const Error error = Failure();
  EXPECT_EQ(error.code, ErrorCode::kDataLoss);
  EXPECT_THAT(error.message, HasSubstr("when it was opened"));
}

}  // namespace
}  // namespace vericache::model
