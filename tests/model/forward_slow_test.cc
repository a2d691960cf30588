// Goal: row invariance on a real model and over the whole grid of shapes.
// Method: as forward_test.cc; SmolLM2 at depth on the fast paths, and a few tokens on the scalar
// one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/forward.h"
#include "tests/support/model_run.h"
#include "tests/support/real_model.h"
#include "tests/support/same_bits.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using testing_support::AllArchitectures;
using testing_support::AllLogits;
using testing_support::FullSequence;
using testing_support::LoadModel;
using testing_support::RandomTokens;
using testing_support::RunShape;
using testing_support::SameBits;
using testing_support::TinyModelFile;

using Floats = std::vector<float>;

TEST(ForwardGrid, GivesTheSameBitsInEveryShape) {
  for (const Architecture architecture : AllArchitectures()) {
    for (const char* weight_type : {"q8_0", "q5_1", "f16"}) {
      TinyModelSpec spec;
      spec.architecture = architecture;
      spec.weight_type = weight_type;
      const TinyModelFile file(spec);
      const auto model = LoadModel(file.Path());
      const auto tokens = RandomTokens(600, spec.n_vocab, 4);
      const Floats expected = AllLogits(*model, tokens, {});
      for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
        for (const int n_threads : {1, 2, 3}) {
          for (const int chunk : {1, 5, 7, 32, 100, 512}) {
            const RunShape shape{.kernels = kernels, .n_threads = n_threads, .chunk = chunk};
            EXPECT_TRUE(SameBits(AllLogits(*model, tokens, shape), expected))
                << model->Config().name << " " << weight_type << " " << kernels->name << ", "
                << n_threads << " threads, chunks of " << chunk;
          }
        }
      }
    }
  }
}

class SmolLm2 : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = testing_support::RealModelPath("smollm2-135m");
    ASSERT_FALSE(HasFailure());
    model_ = LoadModel(path);
  }

  // Logits of the last n_last tokens, prefilled in chunks and then run in passes of n_rows.
  Floats LastLogits(const std::vector<TokenId>& tokens, size_t n_last, size_t n_rows,
                    const RunShape& shape) {
    ThreadTeam team(shape.n_threads);
    Pass pass(*model_, *shape.kernels, team, 512);
    FullSequence sequence(*model_, static_cast<int>(tokens.size()));
    Floats logits;
    const size_t prefix = tokens.size() - n_last;
    size_t begin = 0;
    while (begin < tokens.size()) {
      const bool is_prefill = begin < prefix;
      const size_t n = std::min(is_prefill ? static_cast<size_t>(shape.chunk) : n_rows,
                                (is_prefill ? prefix : tokens.size()) - begin);
      const RowGroup group = sequence.Rows(std::span(tokens).subspan(begin, n),
                                           is_prefill ? LogitRows::kNone : LogitRows::kAll);
      const GroupLogits result = pass.Run({&group, 1}).front();
      EXPECT_TRUE(result.are_all_rows_finite);
      logits.insert(logits.end(), result.data,
                    result.data + static_cast<size_t>(result.n_rows * result.n_vocab));
      sequence.Kv().Commit(static_cast<int>(n));
      begin += n;
    }
    return logits;
  }

  std::unique_ptr<Model> model_;
};

TEST_F(SmolLm2, GivesTheSameBitsAtDepthInAnyRows) {
  const auto tokens = RandomTokens(1500, model_->Config().n_vocab, 1);
  const auto paths = kernels::AvailableKernels();
  const Floats expected =
      LastLogits(tokens, 33, 1, {.kernels = paths.back(), .n_threads = 2, .chunk = 256});
  for (const kernels::KernelTable* kernels : paths) {
    if (kernels->isa == kernels::Isa::kRef) continue;
    for (const RunShape& shape : {RunShape{kernels, 1, 512}, RunShape{kernels, 2, 100}}) {
      for (const size_t n_rows : {5, 33}) {
        EXPECT_TRUE(SameBits(LastLogits(tokens, 33, n_rows, shape), expected))
            << kernels->name << ", " << n_rows << " rows, chunks of " << shape.chunk;
      }
    }
  }
}

TEST_F(SmolLm2, GivesTheScalarPathsBits) {
  const auto tokens = RandomTokens(4, model_->Config().n_vocab, 2);
  const Floats expected = AllLogits(*model_, tokens, {.n_threads = 2, .chunk = 4});
  for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
    EXPECT_TRUE(SameBits(
        AllLogits(*model_, tokens, {.kernels = kernels, .n_threads = 2, .chunk = 3}), expected))
        << kernels->name;
  }
}

}  // namespace
}  // namespace vericache::model
