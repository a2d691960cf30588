// A model loaded once, and sequences run through it in chunks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kv/full_kv.h"
#include "model/forward.h"
#include "model/model.h"

namespace vericache::testing_support {

inline std::unique_ptr<model::Model> LoadModel(const std::string& path) {
  ThreadTeam team(1);
  auto loaded = model::Model::Load(path, team);
  if (!loaded) {
    ADD_FAILURE() << loaded.error().message;
    return nullptr;
  }
  return std::move(*loaded);
}

inline std::vector<TokenId> RandomTokens(int n_tokens, int n_vocab, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens;
  for (int i = 0; i < n_tokens; ++i) {
    tokens.push_back(TokenId(static_cast<int>(random() % static_cast<uint32_t>(n_vocab))));
  }
  return tokens;
}

// A sequence with a full KV of its own.
class FullSequence {
 public:
  FullSequence(const model::Model& model, int n_tokens_max)
      : pool_(model.Config().Kv(), PoolBytes(model, n_tokens_max)), kv_(pool_) {
    EXPECT_TRUE(kv_.Reserve(n_tokens_max).has_value());
  }

  kv::FullKv& Kv() { return kv_; }
  // The next rows of the sequence.
  model::RowGroup Rows(std::span<const TokenId> tokens,
                       model::LogitRows logits = model::LogitRows::kAll) {
    return {.tokens = tokens,
            .first_position = Position(kv_.Length()),
            .kv = &kv_,
            .logits = logits,
            .tap = nullptr};
  }

 private:
  static size_t PoolBytes(const model::Model& model, int n_tokens) {
    const auto n_blocks = static_cast<size_t>(n_tokens / kv::kBlockTokens + 1);
    return n_blocks * static_cast<size_t>(model.Config().n_layers) *
           kv::BlockLayout(model.Config().Kv()).Bytes();
  }

  kv::BlockPool pool_;
  kv::FullKv kv_;
};

// Which machine part runs a model, and how.
struct RunShape {
  const kernels::KernelTable* kernels = &kernels::RefKernels();
  int n_threads = 1;
  int chunk = 64;  // rows of a pass
};

// Logits of every token of a fresh sequence, one after the other [tokens * n_vocab].
inline std::vector<float> AllLogits(const model::Model& model, const std::vector<TokenId>& tokens,
                                    const RunShape& shape) {
  ThreadTeam team(shape.n_threads);
  model::Pass pass(model, *shape.kernels, team, shape.chunk);
  FullSequence sequence(model, static_cast<int>(tokens.size()));
  std::vector<float> logits;
  const auto chunk = static_cast<size_t>(shape.chunk);
  for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const auto rows = std::span(tokens).subspan(begin, std::min(chunk, tokens.size() - begin));
    const model::RowGroup group = sequence.Rows(rows);
    const model::GroupLogits result = pass.Run({&group, 1}).front();
    EXPECT_TRUE(result.are_all_rows_finite);
    logits.insert(logits.end(), result.data,
                  result.data + rows.size() * static_cast<size_t>(result.n_vocab));
    sequence.Kv().Commit(static_cast<int>(rows.size()));
  }
  return logits;
}

}  // namespace vericache::testing_support
