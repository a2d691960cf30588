// Goal: whatever narrows the choice, penalties, DRY, XTC, a grammar, a drafted session commits
// the tokens of plain decoding and ends where it ends; an answer under a grammar keeps to it,
// whatever the drafter proposes (S11, S12, S13).
// Method: scripted logits over the tiny model's vocabulary; mode full on the same script is the
// oracle. (That such answers parse is tested where the grammar is made, in tests/model.)

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "decode/session.h"
#include "model/json_schema.h"
#include "model/tiny_vocab.h"
#include "tests/support/scripted_session.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::decode {
namespace {

using testing_support::DraftKind;
using testing_support::HashedScript;
using testing_support::Script;
using testing_support::ScriptedOptions;
using testing_support::ScriptedSession;

constexpr DraftKind kAllKinds[] = {DraftKind::kPerfect,     DraftKind::kSometimes,
                                   DraftKind::kAlwaysWrong, DraftKind::kConstant,
                                   DraftKind::kRandom,      DraftKind::kEndsText};

const model::Tokenizer& TinyTokenizer() {
  static const testing_support::TinyModelFile file;
  static const auto tokenizer = model::Tokenizer::Load(file.Path());
  VC_CHECK(tokenizer.has_value());
  return **tokenizer;
}

ScriptedOptions Options() {
  return {.n_vocab = TinyTokenizer().VocabSize(),
          .eos = model::kTinyTurnEnd,
          .tail = {.n_recent = 8, .interval = 16},
          .tokenizer = &TinyTokenizer()};
}

Request MakeRequest(int max_tokens) {
  Request request;
  for (int i = 0; i < 40; ++i) request.prompt.emplace_back('a' + (i * 7) % 20);
  request.max_tokens = max_tokens;
  request.draft_len = 7;
  request.hash_logits = true;
  return request;
}

// Mostly the same eight letters, so that much is repeated.
Script ChattyScript(DraftKind kind) {
  const Script hashed = HashedScript(kind, 200, model::kTinyTurnEnd);
  return [=](std::span<const TokenId> seen, bool is_draft, std::span<float> logits) {
    hashed(seen, is_draft, logits);
    for (size_t letter = 'a'; letter <= 'h'; ++letter) logits[letter] += 3.5f;
  };
}

struct Outcome {
  std::vector<TokenId> tokens;
  std::string text;
  FinishReason reason;
  Stats stats;
};

Outcome Play(const Request& request, const Script& script) {
  ScriptedSession run(request, script, Options());
  run.Run();
  return {run.tokens, run.text, run.Get().GetFinishReason(), run.Get().GetStats()};
}

Outcome PlayFull(Request request, const Script& script) {
  request.mode = Mode::kFull;
  return Play(request, script);
}

void ExpectSame(const Outcome& drafted, const Outcome& full) {
  EXPECT_EQ(drafted.tokens, full.tokens);
  EXPECT_EQ(drafted.text, full.text);
  EXPECT_EQ(drafted.reason, full.reason);
  EXPECT_EQ(drafted.stats.logits_hash, full.stats.logits_hash);
}

const std::map<std::string, SamplingParams>& Samplings() {
  static const std::map<std::string, SamplingParams> samplings = {
      {"plain", {}},
      {"penalties",
       {.filters = {.repeat_penalty = 1.4f,
                    .presence_penalty = 0.6f,
                    .frequency_penalty = 0.3f,
                    .penalty_last_n = 9}}},
      {"penalties of the context", {.filters = {.presence_penalty = 2.5f, .penalty_last_n = -1}}},
      {"DRY",
       {.filters = {.dry_multiplier = 3.0f,
                    .dry_allowed_length = 1,
                    .dry_last_n = -1,
                    .dry_breakers = {"c"}}}},
      {"typical", {.filters = {.typical_p = 0.5f}}},
      {"top-n-sigma", {.filters = {.top_n_sigma = 0.3f}}},
      {"XTC", {.xtc = {.probability = 0.5f, .threshold = 0.02f}}},
      {"all",
       {.filters = {.top_k = 20,
                    .top_p = 0.9f,
                    .min_p = 0.05f,
                    .typical_p = 0.95f,
                    .top_n_sigma = 2.0f,
                    .repeat_penalty = 1.2f,
                    .dry_multiplier = 1.0f,
                    .logit_bias = {{TokenId{'e'}, 1.5f}, {TokenId{'f'}, -INFINITY}},
                    .grammar = "root ::= [ -~]*"},
        .xtc = {.probability = 0.3f, .threshold = 0.05f}}}};
  return samplings;
}

TEST(SamplingSession, DraftedEqualsPlainWhateverNarrowsTheChoice) {
  std::map<float, std::vector<TokenId>> unfiltered;
  for (const float temperature : {0.0f, 0.9f}) {
    Request plain = MakeRequest(50);
    plain.sampling = {.temperature = temperature, .seed = 3};
    unfiltered[temperature] = PlayFull(plain, ChattyScript(DraftKind::kPerfect)).tokens;
  }
  for (const auto& [name, sampling] : Samplings()) {
    SCOPED_TRACE(name);
    bool is_felt = name == "plain";
    for (const float temperature : {0.0f, 0.9f}) {
      Request request = MakeRequest(50);
      request.sampling = sampling;
      request.sampling.temperature = temperature;
      request.sampling.seed = 3;
      const Outcome full = PlayFull(request, ChattyScript(DraftKind::kPerfect));
      is_felt = is_felt || full.tokens != unfiltered[temperature];
      for (const DraftKind kind : kAllKinds) {
        for (const int draft_len : {1, 7, 25}) {
          request.draft_len = draft_len;
          const Outcome drafted = Play(request, ChattyScript(kind));
          ExpectSame(drafted, full);
          if (kind == DraftKind::kPerfect) {
            EXPECT_EQ(drafted.stats.accepted, drafted.stats.drafted);
          }
          if (HasFailure())
            FAIL() << static_cast<int>(kind) << " " << draft_len << " " << temperature;
        }
      }
    }
    EXPECT_TRUE(is_felt);
  }
}

// Hashed logits over the whole vocabulary, more and more eager for what closes JSON.
Script JsonScript(DraftKind kind) {
  const Script distort = HashedScript(kind, TinyTokenizer().VocabSize(), model::kTinyTurnEnd);
  return [=](std::span<const TokenId> seen, bool is_draft, std::span<float> logits) {
    distort(seen, is_draft, logits);
    for (const char c : std::string_view("\"}],:")) {
      logits[static_cast<size_t>(c)] += 0.1f * static_cast<float>(seen.size() - 40);
    }
  };
}

TEST(SamplingSession, AnswersUnderASchemaAreJsonWhateverIsDrafted) {
  const auto grammar = model::GrammarFromJsonSchema(
      R"({"type": "object", "properties": {"city": {"type": "string"},
          "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}},
          "required": ["city", "tags"], "additionalProperties": false})");
  ASSERT_TRUE(grammar.has_value());
  int64_t n_rejected = 0;
  for (const int top_k : {0, 40}) {
    for (const float temperature : {0.0f, 1.0f}) {
      Request request = MakeRequest(1000);
      request.sampling = {
          .temperature = temperature, .seed = 11, .filters = {.top_k = top_k, .grammar = *grammar}};
      const Outcome full = PlayFull(request, JsonScript(DraftKind::kPerfect));
      EXPECT_EQ(full.reason, FinishReason::kEos);
      EXPECT_TRUE(full.text.starts_with("{") && full.text.ends_with("}")) << full.text;
      EXPECT_NE(full.text.find("\"city\""), std::string::npos);
      for (const DraftKind kind : kAllKinds) {
        for (const int draft_len : {1, 7, 25}) {
          request.draft_len = draft_len;
          const Outcome drafted = Play(request, JsonScript(kind));
          ExpectSame(drafted, full);
          n_rejected += drafted.stats.drafted - drafted.stats.accepted;
          if (HasFailure()) FAIL() << static_cast<int>(kind) << " " << draft_len;
        }
      }
    }
  }
  EXPECT_GT(n_rejected, 500);
}

// The biases forbid what the grammar demands.
TEST(SamplingSession, AnAnswerWithNoWayOnEndsCleanly) {
  const std::string demands[] = {"c", "a", "aac", "abababababc"};
  for (const std::string& demanded : demands) {
    Request request = MakeRequest(100);
    request.sampling.filters = {.logit_bias = {{TokenId{'c'}, -INFINITY}},
                                .grammar = "root ::= \"" + demanded + "\" \"c\""};
    // No pair of letters that would pass over the 'c'.
    for (int id = 260; id < TinyTokenizer().VocabSize(); ++id) {
      request.sampling.filters.logit_bias.emplace_back(TokenId{id}, -INFINITY);
    }
    const std::string reached = demanded.substr(0, demanded.find('c'));
    const Outcome full = PlayFull(request, HashedScript(DraftKind::kPerfect, 200));
    EXPECT_EQ(full.text, reached);
    EXPECT_EQ(full.reason, FinishReason::kGrammar);
    for (const DraftKind kind : kAllKinds) {
      for (const int draft_len : {1, 2, 7, 25}) {
        request.draft_len = draft_len;
        ExpectSame(Play(request, HashedScript(kind, 200, model::kTinyTurnEnd)), full);
      }
    }
    Request lossy = request;
    lossy.mode = Mode::kLossy;
    const Outcome end = Play(lossy, HashedScript(DraftKind::kPerfect, 200));
    EXPECT_EQ(end.text, reached);
    EXPECT_EQ(end.reason, FinishReason::kGrammar);
  }
}

TEST(SamplingSession, EndsStopsAndGrammarsMeet) {
  Request request = MakeRequest(60);
  request.sampling.filters.grammar = "root ::= \"x\"{5} \"yz\"";
  for (const DraftKind kind : kAllKinds) {
    const Script script = HashedScript(kind, 200, model::kTinyTurnEnd);
    request.stop = {};
    request.ignore_eos = false;
    Outcome drafted = Play(request, script);
    EXPECT_EQ(drafted.text, "xxxxxyz");
    EXPECT_EQ(drafted.reason, FinishReason::kEos);
    ExpectSame(drafted, PlayFull(request, script));

    request.stop = {"xy"};
    drafted = Play(request, script);
    EXPECT_EQ(drafted.text, "xxxx");
    EXPECT_EQ(drafted.reason, FinishReason::kStop);

    // Ends are tokens like any other; nothing else can follow this grammar's text.
    request.stop = {};
    request.ignore_eos = true;
    drafted = Play(request, script);
    EXPECT_EQ(drafted.text, "xxxxxyz");
    EXPECT_EQ(drafted.reason, FinishReason::kLength);
    EXPECT_EQ(drafted.tokens.size(), 60u);
    ExpectSame(drafted, PlayFull(request, script));
  }
}

}  // namespace
}  // namespace vericache::decode
