// Goal: whatever the drafter proposes, a session commits the tokens of plain decoding, ends
// where plain decoding ends, and counts committed tokens only (S3, S4, S6, S8, S11, S17, S21).
// Method: scripted logits in place of a model; mode full on the same script is the oracle.

#include "decode/session.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/scripted_session.h"

namespace vericache::decode {
namespace {

using testing_support::DraftKind;
using testing_support::ExpectSameAsFull;
using testing_support::HashedScript;
using testing_support::MakeRequest;
using testing_support::Prefer;
using testing_support::Script;
using testing_support::ScriptedOptions;
using testing_support::ScriptedSession;
using testing_support::Values;

constexpr DraftKind kAllKinds[] = {DraftKind::kPerfect,     DraftKind::kSometimes,
                                   DraftKind::kAlwaysWrong, DraftKind::kConstant,
                                   DraftKind::kRandom,      DraftKind::kEndsText};

TEST(Session, DraftedEqualsPlainForEveryDrafterLengthAndTemperature) {
  for (const DraftKind kind : kAllKinds) {
    for (const std::optional<int> draft_len :
         {std::optional<int>(1), std::optional<int>(2), std::optional<int>(7),
          std::optional<int>(40), std::optional<int>()}) {
      for (const float temperature : {0.0f, 0.8f}) {
        Request request = MakeRequest(150, 120);
        request.draft_len = draft_len;
        request.sampling = {.temperature = temperature, .seed = 3};
        ExpectSameAsFull(request, HashedScript(kind));
        if (HasFatalFailure()) FAIL() << static_cast<int>(kind) << " " << temperature;
      }
    }
  }
}

TEST(Session, PrefillChunksAndShortPromptsChangeNothing) {
  for (const int n_prompt : {1, 2, 63, 64, 65, 128, 129, 600}) {
    for (const int chunk : {1, 32, 512}) {
      ExpectSameAsFull(MakeRequest(n_prompt, 20), HashedScript(DraftKind::kSometimes),
                       {.prefill_chunk = chunk});
    }
  }
}

TEST(Session, PerfectDraftsAreAllAccepted) {
  for (const float temperature : {0.0f, 0.8f}) {
    Request request = MakeRequest(200, 100);
    request.sampling = {.temperature = temperature, .seed = 5};
    ScriptedSession run(request, HashedScript(DraftKind::kPerfect));
    run.Run();
    const Stats& stats = run.Get().GetStats();
    EXPECT_EQ(stats.accepted, stats.drafted);
    EXPECT_EQ(stats.generated_tokens, 100);
    EXPECT_EQ(stats.rounds, 13);  // 1 + 12 * 8 + 3
  }
}

// S6: no accepted token is a normal round that commits one token.
TEST(Session, NothingAcceptedCommitsOneTokenARound) {
  ScriptedSession run(MakeRequest(200, 50), HashedScript(DraftKind::kAlwaysWrong));
  run.Run();
  const Stats& stats = run.Get().GetStats();
  EXPECT_EQ(stats.accepted, 0);
  EXPECT_EQ(stats.rounds, 48);  // the last token is a plain step: a draft would pass the limit
  EXPECT_EQ(run.verify_rows.front(), 8);
  EXPECT_EQ(run.verify_rows.back(), 1);
  ExpectSameAsFull(MakeRequest(200, 50), HashedScript(DraftKind::kAlwaysWrong));
}

// S4: never more than max_tokens, whatever the draft length.
TEST(Session, NeverExceedsMaxTokens) {
  for (const int max_tokens : {0, 1, 2, 5, 6, 41}) {
    for (const DraftKind kind : kAllKinds) {
      Request request = MakeRequest(150, max_tokens);
      request.draft_len = 40;
      ScriptedSession run(request, HashedScript(kind));
      run.Run();
      EXPECT_EQ(static_cast<int>(run.tokens.size()), max_tokens);
      EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kLength);
      EXPECT_LT(run.highest_draft_position, 150 + max_tokens);
      ExpectSameAsFull(request, HashedScript(kind));
    }
  }
}

TEST(Session, EndsAtTheContext) {
  for (const int max_tokens : {-1, 1000}) {
    Request request = MakeRequest(150, max_tokens);
    request.draft_len = 40;
    const ScriptedOptions options{.n_context = 200};
    ScriptedSession run(request, HashedScript(DraftKind::kPerfect), options);
    run.Run();
    EXPECT_EQ(run.Get().Tokens().size(), 200u);
    EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kContext);
    EXPECT_LT(run.highest_draft_position, 200);
    ExpectSameAsFull(request, HashedScript(DraftKind::kSometimes), options);
  }
  // As many tokens as the context has left is a length, not a context, that ends the answer.
  ScriptedSession run(MakeRequest(150, 50), HashedScript(DraftKind::kPerfect), {.n_context = 200});
  run.Run();
  EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kLength);
}

// The truth prefers `token` once `n_seen` tokens are seen; drafts are perfect.
Script EosAt(size_t n_seen, int token = 299) {
  return [=](std::span<const TokenId> seen, bool, std::span<float> logits) {
    testing_support::FillHashedLogits(seen, 250, logits);
    if (seen.size() == n_seen) Prefer(logits, token);
  };
}

// S3: an end of text anywhere inside an accepted draft ends the answer there.
TEST(Session, StopsAtAnEndOfTextAnywhereInADraft) {
  for (size_t n_seen = 150; n_seen < 150 + 20; ++n_seen) {
    Request request = MakeRequest(150, 100);
    ScriptedSession run(request, EosAt(n_seen));
    run.Run();
    EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kEos);
    EXPECT_EQ(run.tokens.size(), n_seen - 150 + 1);
    EXPECT_EQ(run.tokens.back(), TokenId{299});
    EXPECT_EQ(run.FullKvLength(), static_cast<int>(n_seen));  // every token but the last one
    // S17: what comes behind the end is not counted, accepted or not.
    EXPECT_EQ(run.Get().GetStats().accepted, run.Get().GetStats().drafted);
    EXPECT_EQ(run.Get().GetStats().generated_tokens, static_cast<int>(run.tokens.size()));
    ExpectSameAsFull(request, EosAt(n_seen));
  }
}

TEST(Session, ADraftNeverRunsPastItsEndOfText) {
  Request request = MakeRequest(150, 100);
  request.draft_len = 40;
  ScriptedSession run(request, EosAt(155));
  run.Run();
  EXPECT_EQ(run.n_draft_rows, 5);
  EXPECT_EQ(run.verify_rows, std::vector<int>{5});  // the end itself needs no row
}

TEST(Session, IgnoresEndOfTextWhenAsked) {
  Request request = MakeRequest(150, 60);
  request.ignore_eos = true;
  ScriptedSession run(request, EosAt(155));
  run.Run();
  EXPECT_EQ(run.tokens.size(), 60u);
  EXPECT_EQ(run.tokens[5], TokenId{299});
  EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kLength);
  ExpectSameAsFull(request, EosAt(155));
}

// S8: a drafted end of text has no effect until it is verified.
TEST(Session, ADraftedEndOfTextIsOnlyAProposal) {
  Request request = MakeRequest(150, 60);
  ScriptedSession run(request, HashedScript(DraftKind::kEndsText));
  run.Run();
  EXPECT_EQ(run.tokens.size(), 60u);
  EXPECT_EQ(run.Get().GetStats().accepted, 0);
  EXPECT_EQ(run.Get().GetStats().drafted, run.Get().GetStats().rounds);  // one token each
  ExpectSameAsFull(request, HashedScript(DraftKind::kEndsText));
}

TEST(Session, StopStringsEndTheTextInsideADraft) {
  // The truth spells a text, byte by byte, behind the prompt.
  const std::string spelled = "The quick brown fox jumps over the lazy dog. And so on for ever.";
  const Script spell = [&](std::span<const TokenId> seen, bool, std::span<float> logits) {
    testing_support::FillHashedLogits(seen, 250, logits);
    Prefer(logits, spelled[(seen.size() - 150) % spelled.size()]);
  };
  for (const std::string stop : {"own fox", "T", "lazy dog. ", "ever.", "absent"}) {
    for (const int draft_len : {1, 7, 40}) {
      Request request = MakeRequest(150, 64);
      request.stop = {stop};
      request.draft_len = draft_len;
      ScriptedSession run(request, spell);
      run.Run();
      const size_t at = spelled.find(stop);
      EXPECT_EQ(run.text, spelled.substr(0, at)) << stop;
      EXPECT_EQ(run.Get().GetFinishReason(),
                at == std::string::npos ? FinishReason::kLength : FinishReason::kStop);
      EXPECT_EQ(
          run.tokens.size(),
          std::min(spelled.size(), at == std::string::npos ? spelled.size() : at + stop.size()));
      EXPECT_EQ(run.Get().GetStats().accepted, run.Get().GetStats().drafted);
      ExpectSameAsFull(request, spell);
    }
  }
}

TEST(Session, TextIsWholeCharacters) {
  const std::string spelled = "한국어🤗";
  const Script spell = [&](std::span<const TokenId> seen, bool, std::span<float> logits) {
    testing_support::FillHashedLogits(seen, 250, logits);
    Prefer(logits, static_cast<unsigned char>(spelled[(seen.size() - 150) % spelled.size()]));
  };
  Request request = MakeRequest(150, static_cast<int>(spelled.size()));
  request.draft_len = 4;  // bursts that cut characters
  ScriptedSession whole(request, spell);
  while (!whole.Get().IsFinished()) {
    whole.Step();
    ASSERT_TRUE(spelled.starts_with(whole.text)) << whole.text;
  }
  EXPECT_EQ(whole.text, spelled);
  request.max_tokens -= 1;  // ends inside the last character
  ScriptedSession cut(request, spell);
  cut.Run();
  EXPECT_EQ(cut.text, "한국어\xEF\xBF\xBD");
}

// S11, S12: penalties count committed tokens only.
TEST(Session, PenaltiesSeeCommittedTokensOnly) {
  for (const DraftKind kind : kAllKinds) {
    for (const float temperature : {0.0f, 1.0f}) {
      Request request = MakeRequest(150, 80);
      request.sampling = {.temperature = temperature, .seed = 8};
      request.sampling.filters.repeat_penalty = 1.4f;
      request.sampling.filters.presence_penalty = 1.5f;
      request.sampling.filters.frequency_penalty = 0.5f;
      request.sampling.filters.top_k = 12;
      ExpectSameAsFull(request, HashedScript(kind, 40));
    }
  }
}

// S21: among equal logits the lowest id, whichever path computed them.
TEST(Session, TiesGoToTheLowestIdOnEveryPath) {
  const Script tied = [](std::span<const TokenId> seen, bool, std::span<float> logits) {
    testing_support::FillHashedLogits(seen, 250, logits);
    const auto at = static_cast<size_t>(testing_support::HashTokens(seen) % 200);
    logits[at] = logits[at + 3] = logits[at + 11] = 9.0f;
  };
  ScriptedSession run(MakeRequest(150, 60), tied);
  run.Run();
  EXPECT_EQ(run.Get().GetStats().accepted, run.Get().GetStats().drafted);
  ExpectSameAsFull(MakeRequest(150, 60), tied);
}

TEST(Session, ReportsLogprobsOfEveryToken) {
  Request request = MakeRequest(150, 30);
  request.n_logprobs = 2;
  ScriptedSession drafted(request, HashedScript(DraftKind::kSometimes));
  drafted.Run();
  request.mode = Mode::kFull;
  ScriptedSession full(request, HashedScript(DraftKind::kSometimes));
  full.Run();
  ASSERT_EQ(drafted.logprobs.size(), 30u);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(drafted.logprobs[i].token.id, drafted.tokens[i]);
    EXPECT_EQ(drafted.logprobs[i].token.logprob, full.logprobs[i].token.logprob);
    ASSERT_EQ(drafted.logprobs[i].top.size(), 2u);
    EXPECT_EQ(drafted.logprobs[i].top[0].id, drafted.tokens[i]);  // greedy
  }
}

// ---- rows that went wrong -----------------------------------------------------------------------
TEST(Session, OnlyACommittedWrongRowFailsTheRequest) {
  for (const DraftKind kind : kAllKinds) {
    for (const int position : {149, 150, 155, 170}) {
      const ScriptedOptions options{.bad_full_position = position};
      ScriptedSession run(MakeRequest(150, 60), HashedScript(kind), options);
      run.Run();
      EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kError);
      EXPECT_EQ(static_cast<int>(run.tokens.size()), position - 149);
      EXPECT_NE(run.Get().GetError().message.find("NaN"), std::string::npos);
      ExpectSameAsFull(MakeRequest(150, 60), HashedScript(kind), options);
    }
  }
}

TEST(Session, AWrongPromptRowFailsTheRequest) {
  for (const Mode mode : {Mode::kFull, Mode::kVerified, Mode::kLossy}) {
    Request request = MakeRequest(150, 60);
    request.mode = mode;
    ScriptedSession run(request, HashedScript(DraftKind::kPerfect), {.bad_full_position = 20});
    run.Run();
    EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kError);
    EXPECT_TRUE(run.tokens.empty());
  }
}

TEST(Session, AWrongRowBehindTheEndHarmsNobody) {
  // Position 160 is reached by drafts, but the answer ends before it.
  Request request = MakeRequest(150, 60);
  request.draft_len = 40;
  const Script script = EosAt(158);
  const Script drafts_on = [&](std::span<const TokenId> seen, bool is_draft,
                               std::span<float> logits) {
    if (is_draft) return testing_support::FillHashedLogits(seen, 250, logits);
    script(seen, is_draft, logits);
  };
  const ScriptedOptions options{.bad_full_position = 160};
  ScriptedSession run(request, drafts_on, options);
  run.Run();
  EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kEos);
}

TEST(Session, AWrongDraftRowOnlyEndsTheDraft) {
  for (const int position : {150, 153, 158}) {
    ExpectSameAsFull(MakeRequest(150, 40), HashedScript(DraftKind::kPerfect),
                     {.bad_draft_position = position});
  }
}

// ---- the body and the tail ----------------------------------------------------------------------
TEST(Session, CompressesAtPrefillEndAndEveryInterval) {
  ScriptedOptions options{.tail = {.n_recent = 64, .interval = 128}};
  ScriptedSession run(MakeRequest(1000, 600), HashedScript(DraftKind::kSometimes), options);
  run.Run();
  ASSERT_GE(run.compressions.size(), 4u);
  int body_end = 0;
  for (size_t i = 0; i < run.compressions.size(); ++i) {
    const auto& call = run.compressions[i];
    EXPECT_EQ(call.round, static_cast<int>(i));
    EXPECT_EQ(call.end % 64, 0);
    EXPECT_GE(call.end, body_end + 128);
    EXPECT_GE(call.n_tokens - call.end, 64);  // recent tokens stay exact
    EXPECT_LT(call.n_tokens - call.end, 128);
    EXPECT_FALSE(call.reads_draft);
    body_end = call.end;
  }
  EXPECT_EQ(run.compressions[0].end, 896);
  EXPECT_EQ(run.Get().GetStats().n_compressions, static_cast<int>(run.compressions.size()));
  EXPECT_EQ(run.Get().GetStats().compress_s, 0.5 * static_cast<double>(run.compressions.size()));
}

TEST(Session, MergingMethodsReadTheirOwnDraft) {
  ScriptedOptions options{.traits = {.name = "recording", .refresh = compress::Refresh::kFromDraft},
                          .tail = {.n_recent = 64, .interval = 128}};
  ScriptedSession run(MakeRequest(500, 500), HashedScript(DraftKind::kSometimes), options);
  run.Run();
  ASSERT_GE(run.compressions.size(), 3u);
  EXPECT_FALSE(run.compressions[0].reads_draft);
  for (size_t i = 1; i < run.compressions.size(); ++i) {
    EXPECT_TRUE(run.compressions[i].reads_draft);
    EXPECT_GE(run.compressions[i].n_tokens, run.compressions[i].end + 64);
  }
}

TEST(Session, ShortPromptsAreNotCompressed) {
  ScriptedSession run(MakeRequest(100, 20), HashedScript(DraftKind::kPerfect));
  run.Run();
  EXPECT_TRUE(run.compressions.empty());
  EXPECT_EQ(run.Get().GetStats().accepted, run.Get().GetStats().drafted);
  EXPECT_GT(run.Get().GetStats().drafted, 0);
}

TEST(Session, ACoarseGrainWaitsForIt) {
  ScriptedOptions options{.traits = {.name = "recording", .body_grain = 512}};
  ScriptedSession run(MakeRequest(576, 700), HashedScript(DraftKind::kPerfect), options);
  run.Run();
  ASSERT_EQ(run.compressions.size(), 2u);
  EXPECT_EQ(run.compressions[0].end, 512);
  EXPECT_EQ(run.compressions[0].n_tokens, 576);
  EXPECT_EQ(run.compressions[1].end, 1024);
}

// ---- lossy --------------------------------------------------------------------------------------
TEST(Session, LossyFollowsItsDraftAndFreesTheTruth) {
  Request request = MakeRequest(300, 40);
  request.mode = Mode::kLossy;
  ScriptedSession run(request, HashedScript(DraftKind::kConstant));
  run.Run();
  EXPECT_NE(run.tokens[0], TokenId{7});  // the first token is the truth's
  for (size_t i = 1; i < run.tokens.size(); ++i) EXPECT_EQ(run.tokens[i], TokenId{7});
  EXPECT_EQ(run.tokens.size(), 40u);
  EXPECT_EQ(run.FullKvLength(), 0);
  EXPECT_TRUE(run.verify_rows.empty());
  EXPECT_EQ(run.compressions.size(), 1u);
  EXPECT_GT(run.Get().GetStats().kv_full_bytes, 0u);
  EXPECT_GT(run.Get().GetStats().kv_draft_bytes, 0u);
}

TEST(Session, LossyEqualsFullWhenItsDraftDoes) {
  for (const int n_prompt : {1, 60, 300}) {
    Request request = MakeRequest(n_prompt, 60);
    request.sampling = {.temperature = 0.9f, .seed = 4};
    request.mode = Mode::kLossy;
    ScriptedSession lossy(request, HashedScript(DraftKind::kPerfect));
    lossy.Run();
    request.mode = Mode::kFull;
    ScriptedSession full(request, HashedScript(DraftKind::kPerfect));
    full.Run();
    EXPECT_EQ(Values(lossy.tokens), Values(full.tokens));
  }
}

TEST(Session, LossyMergesGoOnInTheDraft) {
  Request request = MakeRequest(300, 500);
  request.mode = Mode::kLossy;
  ScriptedOptions options{.traits = {.name = "recording", .refresh = compress::Refresh::kFromDraft},
                          .tail = {.n_recent = 64, .interval = 128}};
  ScriptedSession run(request, HashedScript(DraftKind::kPerfect), options);
  run.Run();
  EXPECT_GE(run.compressions.size(), 4u);
  EXPECT_TRUE(run.compressions.back().reads_draft);
}

TEST(Session, LossyFailsOnAWrongRow) {
  Request request = MakeRequest(150, 40);
  request.mode = Mode::kLossy;
  ScriptedSession run(request, HashedScript(DraftKind::kPerfect), {.bad_draft_position = 155});
  run.Run();
  EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kError);
  EXPECT_EQ(run.tokens.size(), 6u);
}

// ---- ends ---------------------------------------------------------------------------------------
TEST(Session, CancelEndsItInEveryPhase) {
  for (int n_steps = 0; n_steps < 14; ++n_steps) {
    ScriptedSession run(MakeRequest(300, 60), HashedScript(DraftKind::kSometimes),
                        {.prefill_chunk = 100});
    for (int i = 0; i < n_steps; ++i) run.Step();
    run.Get().Cancel();
    EXPECT_TRUE(run.Get().IsFinished());
    EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kCancelled);
    EXPECT_EQ(run.Get().RowCount(), 0);
  }
}

TEST(Session, AFailedCompressionFailsTheRequest) {
  ScriptedSession run(MakeRequest(300, 60), HashedScript(DraftKind::kPerfect));
  while (run.Get().NextStep() != Session::Step::kCompress) run.Step();
  run.Get().CompressionJob();
  run.Get().ConsumeBody(MakeError(ErrorCode::kInvalidArgument, "keep is too small"), 0.0);
  EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kError);
  EXPECT_EQ(run.Get().GetError().message, "keep is too small");
}

TEST(Session, RefusesWhatThePoolCannotHold) {
  testing_support::ByteTokenizer tokenizer(300, 299);
  kv::BlockPool pool({.n_layers = 1, .n_kv_heads = 1, .head_dim = 32}, 100000);
  Request request = MakeRequest(300, 3000);
  request.mode = Mode::kFull;
  SessionParts parts{.tokenizer = &tokenizer, .pool = &pool, .n_context = 4096};
  parts.sampler = *Sampler::Make({}, tokenizer, 4096);
  Session session(request, std::move(parts));
  EXPECT_EQ(session.FullKvTokens(), 3300);
  ASSERT_FALSE(session.Reserve().has_value());
  EXPECT_EQ(session.Reserve().error().code, ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace vericache::decode
