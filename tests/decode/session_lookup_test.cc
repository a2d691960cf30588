// Goal: looked-up drafts change no token: whatever the text repeats, a session commits the
// tokens of plain decoding, ends where plain decoding ends, and compresses nothing (S1, S3, S4).
// Method: scripted truths that copy what they have seen, now and then not, or never what would
// be proposed; mode full on the same script is the oracle.

#include <gtest/gtest.h>

#include <algorithm>

#include "decode/ngram_lookup.h"
#include "tests/support/scripted_session.h"

namespace vericache::decode {
namespace {

using testing_support::ExpectSameAsFull;
using testing_support::Prefer;
using testing_support::Script;
using testing_support::ScriptedOptions;
using testing_support::ScriptedSession;

constexpr int kEos = 299;

Request LookupRequest(int n_prompt, int max_tokens) {
  Request request = testing_support::MakeRequest(n_prompt, max_tokens);
  request.drafter = DrafterKind::kNgram;
  return request;
}

// The truth copies what stood `period` tokens before, but for one token in `odd` on average (0:
// none). At temperature 0.8 it copies most of the time.
Script CopyScript(size_t period, uint64_t odd) {
  return [=](std::span<const TokenId> seen, bool, std::span<float> logits) {
    testing_support::FillHashedLogits(seen, 250, logits);
    if (seen.size() < period) return;
    if (odd > 0 && (testing_support::HashTokens(seen) >> 9) % odd == 0) return;
    logits[static_cast<size_t>(seen[seen.size() - period].value)] = 9.0f;
  };
}

// The truth never gives what would be proposed.
void NeverAsProposed(std::span<const TokenId> seen, bool, std::span<float> logits) {
  testing_support::FillHashedLogits(seen, 4, logits);  // few tokens: matches abound
  NgramLookup lookup;
  for (const TokenId token : seen) lookup.Append(token);
  const NgramProposal proposal = lookup.Propose({}, 1);
  if (!proposal.tokens.empty()) logits[static_cast<size_t>(proposal.tokens[0].value)] = -30.0f;
}

std::vector<Script> AllScripts() {
  return {
      CopyScript(40, 0), CopyScript(40, 6),
      CopyScript(1, 0),  CopyScript(100, 2),
      &NeverAsProposed,  testing_support::HashedScript(testing_support::DraftKind::kPerfect, 3)};
}

// A compressed KV that now and then sees another token than the truth does.
Script WithPoorDrafts(const Script& truth) {
  return [=](std::span<const TokenId> seen, bool is_draft, std::span<float> logits) {
    truth(seen, is_draft, logits);
    const uint64_t h = testing_support::HashTokens(seen) >> 11;
    if (is_draft && h % 5 == 0) Prefer(logits, static_cast<int>((h >> 8) % 250));
  };
}

TEST(SessionLookup, EqualsPlainForEveryTruthLengthAndTemperature) {
  for (const Script& script : AllScripts()) {
    for (const std::optional<int> draft_len :
         {std::optional<int>(0), std::optional<int>(1), std::optional<int>(7),
          std::optional<int>(40), std::optional<int>()}) {
      for (const float temperature : {0.0f, 0.8f}) {
        Request request = LookupRequest(150, 120);
        request.draft_len = draft_len;
        request.sampling = {.temperature = temperature, .seed = 3};
        ExpectSameAsFull(request, script);
        request.drafter = DrafterKind::kBoth;
        ExpectSameAsFull(request, script);
        ExpectSameAsFull(request, WithPoorDrafts(script));
        request.sampling.filters.repeat_penalty = 1.2f;
        request.sampling.filters.top_k = 12;
        ExpectSameAsFull(request, WithPoorDrafts(script));
        request.drafter = DrafterKind::kNgram;
        ExpectSameAsFull(request, script);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(SessionLookup, CopiesAreAcceptedAndNothingIsCompressed) {
  for (const float temperature : {0.0f, 0.2f}) {
    Request request = LookupRequest(150, 121);
    request.sampling = {.temperature = temperature, .seed = 5};
    ScriptedSession run(request, CopyScript(40, 0));
    run.Run();
    const Stats& stats = run.Get().GetStats();
    EXPECT_EQ(stats.accepted, stats.drafted);
    EXPECT_GE(stats.accepted, 100);
    EXPECT_LE(stats.rounds, 16);
    EXPECT_EQ(stats.looked_up, stats.drafted);
    EXPECT_EQ(stats.looked_up_kept, stats.accepted);
    EXPECT_EQ(stats.kv_draft_bytes, 0u);
    EXPECT_EQ(run.n_draft_rows, 0);
    EXPECT_TRUE(run.compressions.empty());
  }
}

TEST(SessionLookup, BothLooksUpWhileTheModelDoesNotDraft) {
  Request request = LookupRequest(1000, 121);
  request.draft_len = std::nullopt;
  const ScriptedOptions heavy{.weight_bytes = size_t{1} << 30};  // a draft KV would save nothing
  ScriptedSession looked_up(request, CopyScript(40, 6), heavy);
  looked_up.Run();
  request.drafter = DrafterKind::kBoth;
  ScriptedSession both(request, CopyScript(40, 6), heavy);
  both.Run();
  EXPECT_EQ(both.verify_rows, looked_up.verify_rows);
  EXPECT_EQ(both.Get().GetStats().looked_up_kept, looked_up.Get().GetStats().looked_up_kept);
  EXPECT_GT(both.Get().GetStats().accepted, 30);
  EXPECT_TRUE(both.compressions.empty());
}

TEST(SessionLookup, AStepWithoutAMatchIsAPlainStep) {
  Request request = LookupRequest(150, 30);
  const auto count_up = [](std::span<const TokenId> seen, bool, std::span<float> logits) {
    Prefer(logits, static_cast<int>(200 + (seen.size() - 150) % 90));
  };
  ScriptedSession run(request, count_up);
  run.Run();
  EXPECT_EQ(run.Get().GetStats().rounds, 0);
  EXPECT_EQ(run.verify_rows, std::vector<int>(29, 1));
}

// S4: never more than max_tokens, and no row behind the last one.
TEST(SessionLookup, NeverExceedsMaxTokensOrTheContext) {
  for (const int max_tokens : {0, 1, 2, 5, 6, 41, -1}) {
    for (const Script& script : AllScripts()) {
      Request request = LookupRequest(150, max_tokens);
      request.draft_len = 40;
      const ScriptedOptions options{.n_context = 200};
      ScriptedSession run(request, script, options);
      run.Run();
      EXPECT_EQ(static_cast<int>(run.tokens.size()), max_tokens < 0 ? 50 : max_tokens);
      for (const int n_rows : run.verify_rows) EXPECT_LE(n_rows, max_tokens < 0 ? 50 : max_tokens);
      ExpectSameAsFull(request, script, options);
    }
  }
}

// S3: the truth ends the text inside a proposal, wherever that is.
TEST(SessionLookup, StopsAtAnEndOfTextInsideAProposal) {
  for (size_t n_seen = 150; n_seen < 150 + 20; ++n_seen) {
    const Script copy = CopyScript(40, 0);
    const Script ends = [&](std::span<const TokenId> seen, bool is_draft, std::span<float> logits) {
      copy(seen, is_draft, logits);
      if (seen.size() == n_seen) Prefer(logits, kEos);
    };
    ScriptedSession run(LookupRequest(150, 100), ends);
    run.Run();
    EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kEos);
    EXPECT_EQ(run.tokens.size(), n_seen - 150 + 1);
    EXPECT_EQ(run.FullKvLength(), static_cast<int>(n_seen));
    ExpectSameAsFull(LookupRequest(150, 100), ends);
  }
}

// A prompt holds ends of text, between the turns of a conversation: a proposal that copies one
// stops there, and it counts only if the truth gives it.
TEST(SessionLookup, AProposalEndsAtItsEndOfText) {
  for (const bool is_ignored : {false, true}) {
    for (const uint64_t odd : {0u, 3u}) {
      Request request = LookupRequest(150, 60);
      request.prompt[115] = TokenId{kEos};
      request.draft_len = 20;
      request.ignore_eos = is_ignored;
      ScriptedSession run(request, CopyScript(40, odd));
      run.Run();
      ExpectSameAsFull(request, CopyScript(40, odd));
      if (odd > 0) continue;
      EXPECT_EQ(run.Get().GetFinishReason(),
                is_ignored ? FinishReason::kLength : FinishReason::kEos);
      EXPECT_EQ(run.tokens.size(), is_ignored ? 60u : 6u);
      // One token is given by the prefill, two more make the match; the end needs no row.
      if (!is_ignored) {
        EXPECT_EQ(run.verify_rows, (std::vector<int>{1, 1, 3}));
      }
    }
  }
}

TEST(SessionLookup, StopStringsEndTheTextInsideAProposal) {
  const std::string spelled = "The dog ran. The dog ran. The dog ran off.";
  const Script spell = [&](std::span<const TokenId> seen, bool, std::span<float> logits) {
    Prefer(logits, spelled[(seen.size() - 150) % spelled.size()]);
  };
  for (const std::string stop : {"ran. The dog ran.", "off", "an. The dog ran. T", "absent"}) {
    for (const std::optional<int> draft_len : {std::optional<int>(7), std::optional<int>(40)}) {
      Request request = LookupRequest(150, 64);
      request.stop = {stop};
      request.draft_len = draft_len;
      ScriptedSession run(request, spell);
      run.Run();
      EXPECT_GT(run.Get().GetStats().accepted, 0);
      if (stop != "absent") {
        EXPECT_EQ(run.text, spelled.substr(0, spelled.find(stop)));
      }
      ExpectSameAsFull(request, spell);
    }
  }
}

TEST(SessionLookup, AWrongRowFailsOnlyWhereItIsCommitted) {
  for (const int position : {149, 150, 155, 170}) {
    const ScriptedOptions options{.bad_full_position = position};
    for (const Script& script : AllScripts()) {
      ExpectSameAsFull(LookupRequest(150, 60), script, options);
    }
  }
}

// S1, S20: one word repeated, and a truth that never goes on as proposed.
TEST(SessionLookup, HostileRepetitionCostsLittle) {
  Request request = LookupRequest(48, 600);
  std::fill(request.prompt.begin(), request.prompt.end(), TokenId{2});
  request.draft_len = std::nullopt;
  ScriptedSession run(request, &NeverAsProposed);
  run.Run();
  const Stats& stats = run.Get().GetStats();
  EXPECT_EQ(stats.accepted, 0);
  EXPECT_GT(stats.drafted, 0);
  // A drafted token costs 0.2 plain steps: 2 % of all time and four steps pay for this many.
  EXPECT_LT(stats.drafted, static_cast<int64_t>((0.021 * 600 + 4) / 0.2));
  ExpectSameAsFull(request, &NeverAsProposed);
}

// ---- lookups inside a compressed draft
// -----------------------------------------------------------

Request BothRequest(int n_prompt, int max_tokens) {
  Request request = LookupRequest(n_prompt, max_tokens);
  request.drafter = DrafterKind::kBoth;
  request.draft_len = 30;
  return request;
}

TEST(SessionLookup, ADraftPassRunsManySuggestedTokens) {
  ScriptedSession run(BothRequest(300, 300), CopyScript(40, 0));
  run.Run();
  const Stats& stats = run.Get().GetStats();
  EXPECT_EQ(stats.accepted, stats.drafted);
  EXPECT_GT(stats.drafted, 270);
  EXPECT_LT(run.n_draft_passes, 80);
  EXPECT_EQ(stats.drafted, stats.looked_up_kept + run.n_draft_passes);
  EXPECT_GE(run.n_draft_rows, stats.drafted);
  EXPECT_FALSE(run.compressions.empty());
}

// What the compressed model does not draft itself never reaches the verify.
TEST(SessionLookup, SuggestionsTheDraftDoesNotMakeAreDropped) {
  const Script truth = CopyScript(40, 0);
  const Script never = [&](std::span<const TokenId> seen, bool is_draft, std::span<float> logits) {
    truth(seen, is_draft, logits);
    if (is_draft) NeverAsProposed(seen, is_draft, logits);
  };
  ScriptedSession run(BothRequest(300, 100), never);
  run.Run();
  EXPECT_EQ(run.Get().GetStats().accepted, 0);
  ExpectSameAsFull(BothRequest(300, 100), never);
}

TEST(SessionLookup, NestedDraftsEndWhereTheTextDoes) {
  for (const int max_tokens : {1, 2, 5, 6, 41, -1}) {
    for (const Script& script : AllScripts()) {
      Request request = BothRequest(150, max_tokens);
      const ScriptedOptions options{.n_context = 200};
      ScriptedSession run(request, WithPoorDrafts(script), options);
      run.Run();
      EXPECT_LE(run.highest_draft_position, max_tokens < 0 ? 200 : 150 + max_tokens);
      ExpectSameAsFull(request, WithPoorDrafts(script), options);
    }
  }
  for (const bool is_ignored : {false, true}) {
    for (const uint64_t odd : {0u, 3u}) {
      Request request = BothRequest(150, 60);
      for (const size_t at : {112u, 115u, 120u}) request.prompt[at] = TokenId{kEos};
      request.ignore_eos = is_ignored;
      ExpectSameAsFull(request, CopyScript(40, odd));
      ExpectSameAsFull(request, WithPoorDrafts(CopyScript(40, odd)));
    }
  }
}

TEST(SessionLookup, NoDraftRowRunsBehindASuggestedEndOfText) {
  Request request = BothRequest(150, 60);
  request.prompt[118] = TokenId{kEos};  // copied to position 158
  ScriptedSession run(request, CopyScript(40, 0));
  run.Run();
  EXPECT_EQ(run.Get().GetFinishReason(), FinishReason::kEos);
  EXPECT_EQ(run.highest_draft_position, 158);
  EXPECT_LT(run.n_draft_passes, 8);
}

TEST(SessionLookup, AWrongDraftRowEndsTheDraftBeforeIt) {
  for (const int position : {150, 153, 158, 163}) {
    for (const Script& script : AllScripts()) {
      ExpectSameAsFull(BothRequest(150, 40), script, {.bad_draft_position = position});
    }
  }
}

// Long enough an answer for auto to compress: lookups run inside the drafts over the compressed KV.
TEST(SessionLookup, AutoDraftsOverTheCompressedKvAndLooksUpInside) {
  for (const uint64_t odd : {0u, 6u}) {
    Request request = BothRequest(1000, 400);
    request.draft_len = std::nullopt;
    ScriptedSession run(request, CopyScript(40, odd));
    run.Run();
    const Stats& stats = run.Get().GetStats();
    EXPECT_FALSE(run.compressions.empty());
    EXPECT_GT(run.n_draft_passes, 0);
    EXPECT_GT(run.n_draft_rows, run.n_draft_passes);
    EXPECT_GT(stats.looked_up_kept, 0);
    EXPECT_GT(stats.accepted, 100);
    ExpectSameAsFull(request, CopyScript(40, odd));
    ExpectSameAsFull(request, WithPoorDrafts(CopyScript(40, odd)));
  }
}

// Where weights dominate auto compresses nothing, and verifies what is looked up.
TEST(SessionLookup, AutoCompressesNothingWhereWeightsDominate) {
  Request request = BothRequest(1000, 400);
  request.draft_len = std::nullopt;
  const ScriptedOptions options{.weight_bytes = size_t{1} << 30};
  ScriptedSession run(request, CopyScript(40, 6), options);
  run.Run();
  EXPECT_TRUE(run.compressions.empty());
  EXPECT_EQ(run.n_draft_passes, 0);
  EXPECT_GT(run.Get().GetStats().looked_up_kept, 0);
  ExpectSameAsFull(request, CopyScript(40, 6), options);
}

// What weights cost is asked of the plain steps, whose time was measured, and not of a verify
// behind them. Here drafts would gain a little, not enough for the start; without weights they
// would.
TEST(SessionLookup, AutoAsksThePlainStepsForTheirShare) {
  Request request = BothRequest(1000, 250);
  request.draft_len = std::nullopt;
  ScriptedOptions options{.weight_bytes = 136000};  // as much as the prompt's KV
  ScriptedSession alone(request, CopyScript(40, 6), options);
  alone.Run();
  EXPECT_TRUE(alone.compressions.empty());
  EXPECT_GT(alone.Get().GetStats().looked_up, 0);
  options.share = [](int n_rows) { return n_rows == 1 ? 1.0 : 0.01; };
  ScriptedSession shared(request, CopyScript(40, 6), options);
  shared.Run();
  EXPECT_TRUE(shared.compressions.empty());
  options.share = [](int) { return 0.01; };
  ScriptedSession light(request, CopyScript(40, 6), options);
  light.Run();
  EXPECT_FALSE(light.compressions.empty());
}

TEST(SessionLookup, AutoFollowsCopies) {
  Request request = LookupRequest(150, 600);
  request.draft_len = std::nullopt;
  ScriptedSession run(request, CopyScript(40, 0));
  run.Run();
  EXPECT_GT(run.Get().GetStats().accepted, 540);
  EXPECT_LT(run.Get().GetStats().rounds, 40);
}

}  // namespace
}  // namespace vericache::decode
