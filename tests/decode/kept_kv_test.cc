// Goal: kept KV holds the tokens that its blocks hold, keeps them alive, and gives them back; a
// session reuses what its prompt has in common with them, but for the rows it must see.
// Method: a pool without a model.

#include "decode/kept_kv.h"

#include <gtest/gtest.h>

#include <numeric>

#include "decode/session.h"
#include "tests/support/make_sampler.h"
#include "tests/support/scripted_session.h"

namespace vericache::decode {
namespace {

constexpr kv::KvShape kShape{.n_layers = 1, .n_kv_heads = 1, .head_dim = 32};

std::vector<TokenId> Tokens(int n_tokens) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < n_tokens; ++i) tokens.emplace_back(i % 200);
  return tokens;
}

std::shared_ptr<kv::BlockPool> MakePool() {
  return std::make_shared<kv::BlockPool>(kShape, size_t{1} << 20);
}

std::shared_ptr<const KeptKv> Keep(const std::shared_ptr<kv::BlockPool>& pool, int n_tokens) {
  kv::FullKv full(*pool);
  EXPECT_TRUE(full.Reserve(n_tokens + 300).has_value());
  full.Commit(n_tokens);
  return std::make_shared<const KeptKv>(pool, Tokens(n_tokens + 1), full);  // one is pending
}

TEST(KeptKv, HoldsItsTokensAndBlocksAndNoMore) {
  auto pool = MakePool();
  auto kept = Keep(pool, 300);
  EXPECT_EQ(kept->tokens.size(), 300u);
  EXPECT_EQ(kept->kv.Length(), 300);
  EXPECT_EQ(pool->LiveCount(), 2);
  kv::BlockPool* const alive = pool.get();
  pool.reset();
  EXPECT_EQ(alive->LiveCount(), 2);
}

TEST(KeptKv, CommonPrefixEndsWhereTokensDiffer) {
  std::vector<TokenId> a = Tokens(10);
  EXPECT_EQ(CommonPrefix(a, a), 10);
  EXPECT_EQ(CommonPrefix(a, Tokens(4)), 4);
  EXPECT_EQ(CommonPrefix(Tokens(4), a), 4);
  EXPECT_EQ(CommonPrefix(a, {}), 0);
  a[6] = TokenId{7};
  EXPECT_EQ(CommonPrefix(a, Tokens(10)), 6);
  a[0] = TokenId{7};
  EXPECT_EQ(CommonPrefix(Tokens(10), a), 0);
}

// Tokens of a prompt that a session takes over from 300 kept ones.
int ReusedOf(int n_prompt, compress::Traits traits, Mode mode = Mode::kVerified) {
  testing_support::ByteTokenizer tokenizer(300, 299);
  auto pool = MakePool();
  std::vector<testing_support::RecordingCompressor::Call> calls;
  Request request;
  request.prompt = Tokens(n_prompt);
  request.mode = mode;
  request.prefix = Keep(pool, 300);
  SessionParts parts{.tokenizer = &tokenizer,
                     .pool = pool.get(),
                     .sampler = testing_support::MakeSampler(request.sampling, 300),
                     .queries = {.n_layers = 1, .n_heads = 1, .head_dim = 32},
                     .n_context = 4096};
  parts.compressor = std::make_unique<testing_support::RecordingCompressor>(traits, &calls);
  Session session(request, std::move(parts));
  const int n_reused = session.GetStats().reused_tokens;
  EXPECT_EQ(session.RowCount(), n_prompt - n_reused);
  EXPECT_EQ(session.PrefilledCount(), n_reused);
  session.ForgetPrefix();
  EXPECT_EQ(session.RowCount(), n_prompt);
  EXPECT_EQ(session.GetStats().reused_tokens, 0);
  return n_reused;
}

TEST(KeptKv, ASessionRunsTheRowsItMustSee) {
  const compress::Traits plain{.name = "plain"};
  EXPECT_EQ(ReusedOf(1, plain), 0);
  EXPECT_EQ(ReusedOf(300, plain), 299);  // the last token gives the logits
  EXPECT_EQ(ReusedOf(301, plain), 300);
  EXPECT_EQ(ReusedOf(900, plain), 300);
  const compress::Traits windowed{
      .name = "windowed", .needs = compress::Needs::kWindowQueries, .n_window = 32};
  EXPECT_EQ(ReusedOf(20, windowed), 0);
  EXPECT_EQ(ReusedOf(32, windowed), 0);
  EXPECT_EQ(ReusedOf(33, windowed), 1);
  EXPECT_EQ(ReusedOf(310, windowed), 278);
  EXPECT_EQ(ReusedOf(332, windowed), 300);
  EXPECT_EQ(ReusedOf(310, windowed, Mode::kFull), 300);
}

}  // namespace
}  // namespace vericache::decode
