// Q3. In another engine a quantised KV failed an assertion wherever the KV had fewer heads than the
// queries (TheTom/llama-cpp-turboquant#78). Right: multi-head, grouped-query by 2, 4 and 8 and
// multi-query attention all draft over every width, and answer as the full KV does.

#include <gtest/gtest.h>

#include "tests/support/identity_case.h"

namespace vericache {
namespace {

struct Heads {
  int n_heads;
  int n_kv_heads;
};

TEST(Q3HeadCounts, DraftOverEveryWidth) {
  int64_t n_drafted = 0;
  int64_t n_accepted = 0;
  for (const Heads heads : {Heads{4, 4}, {4, 2}, {8, 2}, {8, 1}, {6, 3}, {1, 1}}) {
    const testing_support::TinyModel tiny(
        {.n_heads = heads.n_heads, .n_kv_heads = heads.n_kv_heads});
    decode::Request request;
    request.prompt = testing_support::RandomPrompt(300, 9);
    request.max_tokens = 48;
    request.draft_len = 4;
    request.hash_logits = true;
    request.ignore_eos = true;
    decode::Request plain = request;
    plain.mode = decode::Mode::kFull;
    const auto expected = testing_support::RunSolo(tiny, plain);
    for (const char* compressor : {"kivi:bits=8", "kivi:bits=4", "kivi:bits=2", "rotated:bits=4",
                                   "snapkv:keep=0.5+kivi:bits=4"}) {
      SCOPED_TRACE(fmt::format("{} of {} heads, {}", heads.n_kv_heads, heads.n_heads, compressor));
      request.compressor = compressor;
      const auto answer = testing_support::RunSolo(tiny, request);
      testing_support::ExpectIdentical(answer, expected);
      EXPECT_GT(answer.stats.drafted, 0);
      if (request.compressor != "kivi:bits=8") continue;
      n_drafted += answer.stats.drafted;
      n_accepted += answer.stats.accepted;
    }
  }
  // Eight bits draft almost as well as the full KV, if each query meets its own head.
  EXPECT_GE(n_accepted * 10, n_drafted * 8);
}

}  // namespace
}  // namespace vericache
