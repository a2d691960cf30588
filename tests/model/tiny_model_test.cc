// Goal: the same spec gives the same bytes, another seed another model; what it cannot hold is
// refused.
// Method: files compared; the weights' deviations measured.

#include "model/tiny_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/gguf_file.h"
#include "tests/support/named_tensors.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using ::testing::HasSubstr;
using testing_support::ReadBytes;
using testing_support::TempFolder;
using testing_support::TinyModelFile;

std::string BytesOf(const TinyModelSpec& spec) { return ReadBytes(TinyModelFile(spec).Path()); }

TEST(TinyModel, SameSpecSameBytes) {
  EXPECT_EQ(BytesOf({.seed = 7}), BytesOf({.seed = 7}));
  EXPECT_NE(BytesOf({.seed = 7}), BytesOf({.seed = 8}));
  EXPECT_NE(BytesOf({}), BytesOf({.architecture = Architecture::kQwen2}));
}

TEST(TinyModel, LoadsInManyShapes) {
  const TempFolder folder;
  ThreadTeam team(2);
  const std::vector<TinyModelSpec> specs = {
      {.n_layers = 1, .n_heads = 1, .n_kv_heads = 1, .head_dim = 32},
      {.n_heads = 6, .n_kv_heads = 3, .head_dim = 16, .weight_type = "f16"},
      {.n_heads = 9, .n_kv_heads = 3, .head_dim = 64, .n_ffn = 96},
      {.architecture = Architecture::kQwen2,
       .n_heads = 14,
       .n_kv_heads = 2,
       .head_dim = 64,
       .n_vocab = 1000},
      {.architecture = Architecture::kQwen3, .n_heads = 4, .head_dim = 64, .n_embd = 96},
      {.n_heads = 2, .n_kv_heads = 2, .head_dim = 128, .n_ffn = 256, .weight_type = "Q4_K"},
      {.n_vocab = 260, .weight_type = "F32", .is_tied = false},
      {.rope_scaling = RopeScaling::kLinear},
      {.rope_scaling = RopeScaling::kYarn, .has_frequency_factors = true}};
  for (const TinyModelSpec& spec : specs) {
    const Status written = WriteTinyModel(spec, folder.Path("x.gguf"));
    ASSERT_TRUE(written.has_value()) << written.error().message;
    const auto model = Model::Load(folder.Path("x.gguf"), team);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const ModelConfig& config = (*model)->Config();
    EXPECT_EQ(config.n_heads, spec.n_heads);
    EXPECT_EQ(config.n_kv_heads, spec.n_kv_heads);
    EXPECT_EQ(config.head_dim, spec.head_dim);
    EXPECT_EQ(config.n_embd, spec.n_embd > 0 ? spec.n_embd : spec.n_heads * spec.head_dim);
    EXPECT_EQ(config.n_ffn, spec.n_ffn);
    EXPECT_EQ(config.n_vocab, spec.n_vocab);
    EXPECT_EQ(config.rope.scaling, spec.rope_scaling);
    EXPECT_EQ(config.rope.frequency_factors.empty(), !spec.has_frequency_factors);
  }
}

// Mean and deviation of the values of a tensor.
std::pair<double, double> Moments(const GgufFile& file, const std::string& name) {
  const std::vector<float> values =
      testing_support::DequantizedByGgml(file, *file.FindTensor(name));
  double sum = 0;
  double squares = 0;
  for (const float v : values) {
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  const double n = static_cast<double>(values.size());
  return {sum / n, std::sqrt(squares / n - sum / n * (sum / n))};
}

TEST(TinyModel, WeightsHaveTheDeviationsThatKeepItAlive) {
  const TinyModelFile tiny({.weight_type = "f32"});
  const auto file = GgufFile::Open(tiny.Path());
  ASSERT_TRUE(file.has_value());
  const double unit = 1.0 / std::sqrt(128.0);
  const auto expect = [&](const std::string& name, double mean, double deviation,
                          double tolerance) {
    const auto [m, d] = Moments(*file, name);
    EXPECT_NEAR(m, mean, tolerance * deviation * 3) << name;
    EXPECT_NEAR(d, deviation, tolerance * deviation) << name;
  };
  expect("token_embd.weight", 0.0, 0.1, 0.02);
  expect("blk.0.attn_q.weight", 0.0, std::sqrt(2.5) * unit, 0.02);
  expect("blk.1.attn_v.weight", 0.0, unit, 0.03);
  expect("blk.1.ffn_down.weight", 0.0, unit, 0.03);
  expect("blk.0.attn_norm.weight", 1.0, 0.1, 0.3);
  expect("output_norm.weight", 4.0 * unit / 0.1, 0.4 * unit / 0.1, 0.3);
}

TEST(TinyModel, RefusesWhatItCannotHold) {
  const TempFolder folder;
  const auto refusal = [&](const TinyModelSpec& spec) {
    const Status status = WriteTinyModel(spec, folder.Path("x.gguf"));
    if (status.has_value()) {
      ADD_FAILURE() << "accepted";
      return std::string();
    }
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    return status.error().message;
  };
  EXPECT_THAT(refusal({.weight_type = "q4_K"}), HasSubstr("multiple of 256"));
  EXPECT_THAT(refusal({.n_ffn = 100}), HasSubstr("multiple of 32"));
  EXPECT_THAT(refusal({.n_embd = 100}), HasSubstr("multiple of 32"));
  EXPECT_THAT(refusal({.n_embd = -32}), HasSubstr("-32"));
  EXPECT_THAT(refusal({.weight_type = "q9"}), HasSubstr("q8_0"));
  EXPECT_THAT(refusal({.weight_type = ""}), HasSubstr("not one of"));
  EXPECT_THAT(refusal({.n_vocab = 259}), HasSubstr("at least 260"));
  EXPECT_THAT(refusal({.n_layers = 0}), HasSubstr("0 of anything"));
  EXPECT_THAT(refusal({.architecture = Architecture::kQwen2, .has_frequency_factors = true}),
              HasSubstr("only llama"));
  const Status unwritable = WriteTinyModel({}, "/nowhere/x.gguf");
  ASSERT_FALSE(unwritable.has_value());
  EXPECT_EQ(unwritable.error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace vericache::model
