// Goal: the forward pass gives the definition's logits, bit for bit, for any rows beside each
// other, chunks, threads and instruction sets.
// Method: tiny models of every weight type against a literal scalar model; the scalar path in
// one shape against every path in every shape; golden bits.
#include "model/forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/literal_model.h"
#include "tests/support/model_run.h"
#include "tests/support/same_bits.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using testing_support::AllArchitectures;
using testing_support::AllLogits;
using testing_support::FullSequence;
using testing_support::LiteralModel;
using testing_support::LoadModel;
using testing_support::RandomTokens;
using testing_support::RunShape;
using testing_support::SameBits;
using testing_support::TinyModelFile;

using Floats = std::vector<float>;

TinyModelSpec Spec(Architecture architecture, const std::string& weight_type) {
  TinyModelSpec spec;
  spec.architecture = architecture;
  spec.weight_type = weight_type;
  if (weight_type.ends_with("K")) {  // blocks of 256
    spec.n_heads = 8;
    spec.n_ffn = 256;
  }
  return spec;
}

Floats LiteralLogits(const TinyModelFile& file, const Model& model,
                     const std::vector<TokenId>& tokens) {
  Floats logits;
  for (const Floats& row : LiteralModel(file.Path(), model.Config()).Logits(tokens)) {
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

class EveryWeightType : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryWeightType, EqualsTheLiteralModel) {
  for (const Architecture architecture : AllArchitectures()) {
    const TinyModelFile file(Spec(architecture, GetParam()));
    const auto model = LoadModel(file.Path());
    const auto tokens = RandomTokens(5, model->Config().n_vocab, 1);
    EXPECT_TRUE(SameBits(AllLogits(*model, tokens, {}), LiteralLogits(file, *model, tokens)))
        << model->Config().name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EveryWeightType,
                         ::testing::Values("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0",
                                           "q5_1", "q4_K", "q5_K", "q6_K", "iq4_nl"));

TEST(Forward, EqualsTheLiteralModelInEveryOddShape) {
  TinyModelSpec shapes[6];
  shapes[0].is_tied = false;
  shapes[0].n_vocab = 301;  // ends inside a panel
  shapes[1].n_heads = 3;
  shapes[1].n_kv_heads = 1;
  shapes[1].head_dim = 96;
  shapes[1].n_ffn = 96;
  shapes[1].n_layers = 1;
  shapes[2].rope_scaling = RopeScaling::kYarn;
  shapes[2].architecture = Architecture::kQwen2;
  shapes[3].has_frequency_factors = true;
  shapes[3].n_heads = 2;
  shapes[3].head_dim = 64;
  shapes[4].head_dim = 48;  // heads end inside a block of the next quantisation
  shapes[5].architecture = Architecture::kQwen3;
  shapes[5].head_dim = 64;  // the heads together wider than the model
  shapes[5].n_embd = 96;
  for (const TinyModelSpec& spec : shapes) {
    const TinyModelFile file(spec);
    const auto model = LoadModel(file.Path());
    const auto tokens = RandomTokens(9, spec.n_vocab, 2);
    const Floats expected = LiteralLogits(file, *model, tokens);
    for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
      for (const int n_threads : {1, 3}) {
        const RunShape shape{.kernels = kernels, .n_threads = n_threads, .chunk = 64};
        EXPECT_TRUE(SameBits(AllLogits(*model, tokens, shape), expected))
            << "shape " << &spec - shapes << ", " << kernels->name << ", " << n_threads
            << " threads";
      }
    }
  }
}

// Two chunks of softmax.
TEST(Forward, EqualsTheLiteralModelBehind512Tokens) {
  TinyModelSpec spec;
  spec.n_layers = 1;
  spec.n_heads = 2;
  spec.n_kv_heads = 1;
  spec.n_ffn = 32;
  const TinyModelFile file(spec);
  const auto model = LoadModel(file.Path());
  const auto tokens = RandomTokens(530, spec.n_vocab, 3);
  EXPECT_TRUE(SameBits(AllLogits(*model, tokens, {}), LiteralLogits(file, *model, tokens)));
}

// The whole grid of shapes is the slow test's.
TEST(Forward, GivesTheSameBitsInAnyChunksOnAnyThreadsAndInstructionSet) {
  for (const Architecture architecture : AllArchitectures()) {
    const TinyModelFile file(Spec(architecture, "q4_1"));
    const auto model = LoadModel(file.Path());
    const auto tokens = RandomTokens(530, model->Config().n_vocab, 4);
    const Floats expected = AllLogits(*model, tokens, {});
    for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
      if (kernels->isa == kernels::Isa::kRef) continue;
      // Single rows on one thread: hundreds of barriers take long on a busy machine.
      for (const RunShape& shape : {RunShape{kernels, 1, 512}, RunShape{kernels, 1, 1},
                                    RunShape{kernels, 2, 90}, RunShape{kernels, 3, 33}}) {
        EXPECT_TRUE(SameBits(AllLogits(*model, tokens, shape), expected))
            << model->Config().name << " " << kernels->name << ", " << shape.n_threads
            << " threads, chunks of " << shape.chunk;
      }
    }
  }
}

// Weights of every type on every path: the pass mixes panels, blocks and float rows.
TEST_P(EveryWeightType, GivesTheSameBitsOnEveryInstructionSet) {
  const TinyModelFile file(Spec(Architecture::kLlama, GetParam()));
  const auto model = LoadModel(file.Path());
  const auto tokens = RandomTokens(17, model->Config().n_vocab, 5);
  const Floats expected = AllLogits(*model, tokens, {});
  for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
    for (const int chunk : {1, 17}) {
      const RunShape shape{.kernels = kernels, .n_threads = 2, .chunk = chunk};
      EXPECT_TRUE(SameBits(AllLogits(*model, tokens, shape), expected))
          << kernels->name << ", chunks of " << chunk;
    }
  }
}

class ForwardOfTwoLayers : public ::testing::Test {
 protected:
  const kernels::KernelTable& kernels_ = *kernels::AvailableKernels().back();
  TinyModelFile file_;
  std::unique_ptr<Model> model_ = LoadModel(file_.Path());
  ThreadTeam team_{2};
  Pass pass_{*model_, kernels_, team_, 128};

  std::vector<TokenId> Tokens(int n, uint32_t seed) const {
    return RandomTokens(n, model_->Config().n_vocab, seed);
  }
  Floats Alone(const std::vector<TokenId>& tokens) {
    return AllLogits(*model_, tokens, {.kernels = &kernels_});
  }
  std::span<const float> LastRows(const Floats& logits, size_t n_rows) const {
    return std::span(logits).last(n_rows * static_cast<size_t>(model_->Config().n_vocab));
  }
};

TEST_F(ForwardOfTwoLayers, GivesGroupsInOnePassTheBitsTheyGetAlone) {
  const auto long_tokens = Tokens(100, 6);
  const auto short_tokens = Tokens(30, 7);
  const auto fresh_tokens = Tokens(40, 8);
  FullSequence long_one(*model_, 128);
  FullSequence short_one(*model_, 128);
  FullSequence fresh(*model_, 128);
  const RowGroup first[] = {long_one.Rows(std::span(long_tokens).first(99), LogitRows::kNone),
                            short_one.Rows(std::span(short_tokens).first(21), LogitRows::kNone)};
  pass_.Run(first);
  long_one.Kv().Commit(99);
  short_one.Kv().Commit(21);

  const RowGroup groups[] = {long_one.Rows(std::span(long_tokens).last(1)),
                             fresh.Rows(fresh_tokens, LogitRows::kLast),
                             short_one.Rows(std::span(short_tokens).last(9))};
  const auto results = pass_.Run(groups);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].n_rows, 1);
  EXPECT_EQ(results[1].n_rows, 1);
  EXPECT_EQ(results[2].n_rows, 9);
  const auto all_rows = [](const GroupLogits& result) {
    return std::span(result.data, static_cast<size_t>(result.n_rows * result.n_vocab));
  };
  EXPECT_TRUE(SameBits(all_rows(results[0]), LastRows(Alone(long_tokens), 1)));
  EXPECT_TRUE(SameBits(all_rows(results[1]), LastRows(Alone(fresh_tokens), 1)));
  EXPECT_TRUE(SameBits(all_rows(results[2]), LastRows(Alone(short_tokens), 9)));
}

TEST_F(ForwardOfTwoLayers, ForgetsRowsThatAreNotCommitted) {
  const auto tokens = Tokens(20, 9);
  const auto rejected = Tokens(15, 10);
  FullSequence sequence(*model_, 128);
  const RowGroup prompt = sequence.Rows(std::span(tokens).first(12), LogitRows::kNone);
  pass_.Run({&prompt, 1});
  sequence.Kv().Commit(12);
  const RowGroup drafted = sequence.Rows(rejected);
  pass_.Run({&drafted, 1});
  const RowGroup verified = sequence.Rows(std::span(tokens).last(8));
  const GroupLogits result = pass_.Run({&verified, 1}).front();
  EXPECT_TRUE(SameBits(std::span(result.data, static_cast<size_t>(8 * result.n_vocab)),
                       LastRows(Alone(tokens), 8)));
}

TEST_F(ForwardOfTwoLayers, TapsTheNewestQueriesInAnyChunks) {
  const auto tokens = Tokens(50, 11);
  const QueryShape shape{.n_layers = 2, .n_heads = 4, .head_dim = 32};
  std::vector<QueryTap> taps(2, QueryTap(shape, 16, 4));
  for (size_t i = 0; i < taps.size(); ++i) {
    const size_t chunk = i == 0 ? 50 : 3;
    FullSequence sequence(*model_, 128);
    for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
      const auto rows = std::span(tokens).subspan(begin, std::min(chunk, tokens.size() - begin));
      RowGroup group = sequence.Rows(rows, LogitRows::kNone);
      group.tap = &taps[i];
      pass_.Run({&group, 1});
      sequence.Kv().Commit(static_cast<int>(rows.size()));
    }
  }
  const std::vector<Position> window = taps[0].Window(Position(50));
  ASSERT_EQ(window.size(), 16u);
  EXPECT_EQ(taps[1].Window(Position(50)), window);
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    for (const Position position : window) {
      const std::span whole(taps[0].Queries(layer, position), 4 * 32);
      const std::span chunked(taps[1].Queries(layer, position), 4 * 32);
      EXPECT_TRUE(SameBits(whole, chunked));
      EXPECT_NE(whole[0], 0.0f);
    }
  }
}

TEST_F(ForwardOfTwoLayers, MeasuresItsParts) {
  const auto tokens = Tokens(10, 12);
  FullSequence sequence(*model_, 128);
  const RowGroup group = sequence.Rows(tokens);
  pass_.MeasureParts(true);
  pass_.Run({&group, 1});
  const PassTimes times = pass_.PartTimes();
  for (size_t part = 0; part < kPassPartCount; ++part) {
    EXPECT_GT(times.seconds[part], 0.0) << kPassPartNames[part];
  }
}

// ---- what is not finite ------------------------------------------------------------------------

// Overwrites the first bytes of a row of a tensor in the file, where Q8_0 has its scale.
void PoisonRow(const std::string& path, const std::string& tensor, int64_t row) {
  ggml_context* shapes = nullptr;
  gguf_context* gguf = gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &shapes});
  const ggml_tensor* shape = ggml_get_tensor(shapes, tensor.c_str());
  const size_t offset = gguf_get_data_offset(gguf) +
                        gguf_get_tensor_offset(gguf, gguf_find_tensor(gguf, tensor.c_str())) +
                        static_cast<size_t>(row) * ggml_row_size(shape->type, shape->ne[0]);
  const bool is_f32 = shape->type == GGML_TYPE_F32;
  gguf_free(gguf);
  ggml_free(shapes);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  const float nan_f32 = NAN;
  const uint16_t nan_f16 = 0x7e00;
  if (is_f32) {
    file.write(reinterpret_cast<const char*>(&nan_f32), sizeof nan_f32);
  } else {
    file.write(reinterpret_cast<const char*>(&nan_f16), sizeof nan_f16);
  }
}

class NanIn : public ::testing::TestWithParam<const char*> {};

TEST_P(NanIn, FlagsEveryRow) {
  const TinyModelFile file(TinyModelSpec{.is_tied = false});
  PoisonRow(file.Path(), GetParam(), 0);
  const auto model = LoadModel(file.Path());
  const auto tokens = RandomTokens(6, model->Config().n_vocab, 13);
  for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
    ThreadTeam team(2);
    Pass pass(*model, *kernels, team, 16);
    FullSequence sequence(*model, 16);
    const RowGroup group = sequence.Rows(tokens);
    const GroupLogits result = pass.Run({&group, 1}).front();
    EXPECT_FALSE(result.are_all_rows_finite);
    for (int row = 0; row < result.n_rows; ++row) {
      EXPECT_EQ(result.is_finite[static_cast<size_t>(row)], 0) << kernels->name << " row " << row;
      for (const float logit : result.Row(row)) ASSERT_TRUE(std::isfinite(logit));
    }
    // Without logits, all but the output matrix is still seen.
    const RowGroup unseen = sequence.Rows(tokens, LogitRows::kNone);
    EXPECT_EQ(pass.Run({&unseen, 1}).front().are_all_rows_finite,
              std::string(GetParam()).starts_with("output"))
        << kernels->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Tensors, NanIn,
                         ::testing::Values("blk.0.attn_norm.weight", "blk.0.attn_q.weight",
                                           "blk.0.attn_k.weight", "blk.1.attn_v.weight",
                                           "blk.1.attn_output.weight", "blk.1.ffn_norm.weight",
                                           "blk.0.ffn_gate.weight", "blk.1.ffn_up.weight",
                                           "blk.1.ffn_down.weight", "output_norm.weight",
                                           "output.weight"));

TEST(Forward, LeavesRowsBesideANanAlone) {
  const TinyModelFile clean(TinyModelSpec{.is_tied = false});
  const TinyModelFile poisoned(TinyModelSpec{.is_tied = false});
  PoisonRow(poisoned.Path(), "token_embd.weight", 65);
  const auto clean_model = LoadModel(clean.Path());
  const auto model = LoadModel(poisoned.Path());
  const std::vector<TokenId> sick = {TokenId(1), TokenId(65), TokenId(2)};
  const std::vector<TokenId> healthy = {TokenId(3), TokenId(4), TokenId(5), TokenId(6)};
  for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
    ThreadTeam team(2);
    Pass pass(*model, *kernels, team, 16);
    FullSequence first(*model, 16);
    FullSequence second(*model, 16);
    const RowGroup groups[] = {first.Rows(sick), second.Rows(healthy)};
    const auto results = pass.Run(groups);
    EXPECT_FALSE(results[0].are_all_rows_finite);
    EXPECT_EQ(results[0].is_finite[0], 1);
    EXPECT_EQ(results[0].is_finite[1], 0);
    EXPECT_TRUE(results[1].are_all_rows_finite);
    EXPECT_TRUE(SameBits(std::span(results[1].data, 4 * 320), AllLogits(*clean_model, healthy, {})))
        << kernels->name;
  }
}

// ---- golden bits -------------------------------------------------------------------------------

uint64_t Fold(std::span<const float> values) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float x : values) hash = (hash ^ testing_support::Bits(x)) * 0x100000001b3u;
  return hash;
}

// A change here is a change of the arithmetic: it needs a new numerics revision.
TEST(Forward, HasItsGoldenBits) {
  const std::string path = VERICACHE_SOURCE_DIR "/tests/golden/tiny_model_logits.txt";
  std::ifstream golden(path);
  ASSERT_TRUE(golden.good()) << path;
  std::string architecture;
  std::string weight_type;
  uint64_t hash = 0;
  int n_lines = 0;
  while (golden >> architecture >> weight_type >> std::hex >> hash >> std::dec) {
    const auto traits = std::ranges::find(Architectures(), architecture, &ArchitectureTraits::name);
    ASSERT_NE(traits, Architectures().end()) << architecture;
    const TinyModelFile file(Spec(traits->id, weight_type));
    const auto model = LoadModel(file.Path());
    const auto tokens = RandomTokens(32, model->Config().n_vocab, 14);
    const uint64_t got = Fold(AllLogits(*model, tokens, {}));
    EXPECT_EQ(got, hash) << architecture << " " << weight_type << std::hex << " 0x" << got;
    ++n_lines;
  }
  EXPECT_EQ(n_lines, 7);
}

}  // namespace
}  // namespace vericache::model
