// Goal: an answer that reuses the KV of an earlier one is the same to the bit: tokens, text,
// logits of every row; whatever the two have in common, whoever made the KV, and however often
// it is used (D1, D4).
// Method: a pairwise covering over tiny models through the engine; the same request without the
// KV is the oracle. Conversations of several turns, in a budget that holds no second copy.

#include <gtest/gtest.h>

#include <algorithm>

#include "compress/registry.h"
#include "tests/support/answers.h"
#include "tests/support/pairwise.h"
#include "tests/support/solo_run.h"

namespace vericache {
namespace {

using decode::Mode;
using testing_support::Answer;
using testing_support::Ask;
using testing_support::RandomPrompt;

constexpr int kChunk = 512;
constexpr int kWhole = -1;         // the prompt is the earlier one
constexpr int kConversation = -2;  // the prompt is the earlier one, its answer, and more

decode::Request MakeRequest(std::vector<TokenId> prompt, Mode mode) {
  decode::Request request;
  request.prompt = std::move(prompt);
  request.mode = mode;
  request.max_tokens = 24;
  request.ignore_eos = true;
  request.hash_logits = true;
  return request;
}

struct PrefixGrid {
  std::vector<int> common = {0, 1, kChunk - 1, kChunk, kChunk + 1, kWhole, kConversation};
  std::vector<Mode> makers = {Mode::kFull, Mode::kVerified, Mode::kLossy};
  std::vector<Mode> modes = {Mode::kFull, Mode::kVerified, Mode::kLossy};
  std::vector<const char*> specs = {"identity", "streaming:keep=0.3", "snapkv:keep=0.5+kivi:bits=4",
                                    "centroid", "kivi:bits=2"};
  std::vector<std::optional<int>> draft_lens = {6, std::nullopt};
  std::vector<float> temperatures = {0.0f, 0.8f};
  std::vector<int> n_behind = {1, 40, 700};  // tokens of the prompt behind what is common

  std::vector<int> Sizes() const {
    const auto size = [](const auto& values) { return static_cast<int>(values.size()); };
    return {size(common),     size(makers),       size(modes),   size(specs),
            size(draft_lens), size(temperatures), size(n_behind)};
  }
};

std::vector<TokenId> PromptFor(int common, int n_behind, const std::vector<TokenId>& kept,
                               const std::vector<TokenId>& earlier) {
  if (common == kWhole) return earlier;
  const bool is_conversation = common == kConversation;
  std::vector<TokenId> prompt(kept.begin(), is_conversation ? kept.end() : kept.begin() + common);
  for (const TokenId token : RandomPrompt(n_behind, 99)) prompt.push_back(token);
  if (!is_conversation) {  // the first token that differs
    prompt[static_cast<size_t>(common)] = TokenId{kept[static_cast<size_t>(common)].value ^ 1};
  }
  return prompt;
}

// What the request must still run of its prompt.
int RerunOf(const decode::Request& request) {
  const auto traits = (*compress::MakeCompressor(request.compressor))->GetTraits();
  const bool is_tapped = request.mode != Mode::kFull && traits.n_window > 0;
  return is_tapped ? traits.n_window : 1;
}

struct Kept {
  std::vector<TokenId> prompt;
  std::shared_ptr<const decode::KeptKv> kv;
};

Kept MakeKept(engine::Engine& engine, Mode mode) {
  Kept kept{.prompt = RandomPrompt(700, 5), .kv = {}};
  decode::Request request = MakeRequest(kept.prompt, mode);
  request.compressor = "snapkv:keep=0.5+kivi:bits=4";
  request.keep_kv = true;
  testing_support::ReadAnswer(**engine.Submit(request), &kept.kv);
  return kept;
}

TEST(Prefix, ReuseChangesNothingOverAPairwiseGrid) {
  const testing_support::TinyModelFile file;
  const auto engine = testing_support::MakeEngine(
      {.model_path = file.Path(), .n_threads = 2, .prefill_chunk = 100});
  const PrefixGrid grid;
  std::vector<Kept> kept;
  for (const Mode maker : grid.makers) kept.push_back(MakeKept(*engine, maker));
  for (size_t i = 0; i < kept.size(); ++i) {
    ASSERT_TRUE(kept[i].kv) << i;
    const size_t n_answer = grid.makers[i] == Mode::kLossy ? 0 : 23;  // the newest is pending
    ASSERT_EQ(kept[i].kv->tokens.size(), 700 + n_answer);
  }
  int n_reused = 0;
  for (const std::vector<int>& choice : testing_support::Pairwise(grid.Sizes()).Cases()) {
    size_t factor = 0;
    const auto pick = [&](const auto& values) {
      return values[static_cast<size_t>(choice[factor++])];
    };
    const int common = pick(grid.common);
    const Kept& earlier = kept[static_cast<size_t>(choice[factor++])];
    decode::Request request = MakeRequest({}, pick(grid.modes));
    request.compressor = pick(grid.specs);
    request.draft_len = pick(grid.draft_lens);
    request.sampling = {.temperature = pick(grid.temperatures), .seed = 7};
    request.prompt = PromptFor(common, pick(grid.n_behind), earlier.kv->tokens, earlier.prompt);
    SCOPED_TRACE(fmt::format("common {}, maker {}, mode {}, {}, prompt {}", common, choice[1],
                             choice[2], request.compressor, request.prompt.size()));
    const Answer alone = Ask(*engine, request);
    request.prefix = earlier.kv;
    const Answer reused = Ask(*engine, request);
    ASSERT_EQ(reused, alone);
    const int n_common = decode::CommonPrefix(request.prompt, earlier.kv->tokens);
    ASSERT_EQ(reused.stats.reused_tokens,
              std::clamp(static_cast<int>(request.prompt.size()) - RerunOf(request), 0, n_common));
    ASSERT_EQ(alone.stats.reused_tokens, 0);
    n_reused += reused.stats.reused_tokens;
  }
  EXPECT_GT(n_reused, 10000);
}

// An answer that may fill the context, and ends long before.
decode::Request OpenRequest(std::vector<TokenId> prompt, const model::Tokenizer& tokenizer) {
  decode::Request request = MakeRequest(std::move(prompt), Mode::kVerified);
  request.compressor = "kivi:bits=4";
  request.max_tokens = -1;
  request.ignore_eos = false;
  request.sampling = {.temperature = 1.0f, .seed = 3};
  for (int id = 0; id < tokenizer.VocabSize(); ++id) {
    if (!tokenizer.IsEndOfGeneration(TokenId{id})) continue;
    request.sampling.filters.logit_bias.emplace_back(TokenId{id}, 8.0f);
  }
  return request;
}

// Prompt and answers of earlier turns are not run again, though the budget holds one context only
// and every answer may fill it.
TEST(Prefix, AConversationRunsNewTokensOnly) {
  const testing_support::TinyModelFile file({.n_context = 1024});
  const auto probe = testing_support::MakeEngine({.model_path = file.Path(), .n_threads = 1});
  const model::ModelConfig& config = probe->GetModel().Config();
  const size_t context_bytes =
      4 * kv::BlockLayout(config.Kv()).Bytes() * static_cast<size_t>(config.n_layers);
  const auto engine = testing_support::MakeEngine({.model_path = file.Path(),
                                                   .n_threads = 1,
                                                   .fast_kv_bytes = context_bytes,
                                                   .max_sessions = 1});
  std::vector<TokenId> text;
  std::shared_ptr<const decode::KeptKv> kept;
  for (int turn = 0; turn < 5; ++turn) {
    const std::vector<TokenId> question = RandomPrompt(70, static_cast<uint64_t>(turn));
    text.insert(text.end(), question.begin(), question.end());
    decode::Request request = OpenRequest(text, engine->GetTokenizer());
    const Answer alone = Ask(*probe, request);
    ASSERT_EQ(alone.reason, decode::FinishReason::kEos);
    const int n_kept = kept ? static_cast<int>(kept->tokens.size()) : 0;
    request.prefix = std::move(kept);
    request.keep_kv = true;
    const auto stream = *engine->Submit(std::move(request));
    Answer answer = testing_support::ReadAnswer(*stream, &kept);
    ASSERT_EQ(answer, alone) << "turn " << turn;
    ASSERT_EQ(answer.stats.reused_tokens, n_kept);
    for (const int token : answer.tokens) text.emplace_back(token);
    ASSERT_EQ(kept->tokens.size(), text.size() - 1);
  }
  EXPECT_GT(text.size(), 5u * 71);
}

}  // namespace
}  // namespace vericache
