// Goal: every architecture computes what llama.cpp computes for it, not only what our own oracle
// says: a norm left out or put behind RoPE, or a bias forgotten, shows here.
// Method: tiny models with F32 weights, so that only roundings and our 16-bit KV differ; logits of
// every row beside libllama's with an F32 KV.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/model_run.h"
#include "tests/support/tiny_model_file.h"
#include "tests/truth/llama_peer.h"

namespace vericache {
namespace {

using testing_support::TinyModelFile;

constexpr int kTokens = 96;
// Logits have a deviation of 4. The 16-bit KV moves them by at most 0.016 here; a norm behind RoPE
// by 3 and more.
constexpr float kTolerance = 0.05f;

void ExpectTheLogitsOfLlamaCpp(const model::TinyModelSpec& spec) {
  const TinyModelFile file(spec);
  const auto model = testing_support::LoadModel(file.Path());
  const auto tokens = testing_support::RandomTokens(kTokens, spec.n_vocab, 5);
  testing_support::LlamaPeer peer(file.Path(), testing_support::PeerKv::kF32, 512);
  ASSERT_TRUE(peer.IsReady());
  const std::vector<float> theirs = peer.Logits(tokens, 0);
  const std::vector<float> ours = testing_support::AllLogits(*model, tokens, {});
  ASSERT_EQ(ours.size(), theirs.size());
  float worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::fabs(ours[i] - theirs[i]));
  EXPECT_LE(worst, kTolerance) << model->Config().name;
}

TEST(ArchitecturesBesideLlamaCpp, GiveTheSameLogits) {
  for (const model::Architecture architecture : testing_support::AllArchitectures()) {
    for (const uint64_t seed : {1u, 2u}) {
      ExpectTheLogitsOfLlamaCpp({.architecture = architecture,
                                 .seed = seed,
                                 .n_layers = 3,
                                 .n_heads = 4,
                                 .head_dim = 64,
                                 .weight_type = "f32",
                                 .is_tied = seed == 1});
    }
  }
}

TEST(ArchitecturesBesideLlamaCpp, HeadsMayBeWiderTogetherThanTheModel) {
  ExpectTheLogitsOfLlamaCpp({.architecture = model::Architecture::kQwen3,
                             .n_heads = 6,
                             .n_kv_heads = 3,
                             .head_dim = 64,
                             .n_embd = 96,
                             .weight_type = "f32"});
}

TEST(ArchitecturesBesideLlamaCpp, RopeScalingIsTheirs) {
  for (const model::RopeScaling scaling :
       {model::RopeScaling::kLinear, model::RopeScaling::kYarn}) {
    ExpectTheLogitsOfLlamaCpp(
        {.n_context = 64, .weight_type = "f32", .rope_scaling = scaling, .rope_factor = 8.0});
  }
  ExpectTheLogitsOfLlamaCpp({.weight_type = "f32", .has_frequency_factors = true});
}

}  // namespace
}  // namespace vericache
