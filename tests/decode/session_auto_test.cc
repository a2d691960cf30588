// Goal: the automatic draft length drafts when it pays and only then, and compresses nothing that
// is not expected to pay.
// Method: scripted sessions whose passes take known times and read known bytes.

#include <gtest/gtest.h>

#include "tests/support/scripted_session.h"

namespace vericache::decode {
namespace {

using testing_support::DraftKind;
using testing_support::HashedScript;
using testing_support::MakeRequest;
using testing_support::ScriptedSession;

TEST(SessionAuto, DraftsWhenItPaysAndOnlyThen) {
  Request request = MakeRequest(1000, 400);
  request.draft_len = std::nullopt;
  ScriptedSession good(request, HashedScript(DraftKind::kPerfect));
  good.Run();
  EXPECT_GT(good.Get().GetStats().accepted, 300);
  ScriptedSession bad(request, HashedScript(DraftKind::kAlwaysWrong));
  bad.Run();
  EXPECT_LT(bad.Get().GetStats().drafted, 20);
  EXPECT_GT(bad.Get().GetStats().drafted, 0);
}

TEST(SessionAuto, WithoutABodyNeitherCompressesNorDrafts) {
  Request request = MakeRequest(20, 40);
  request.draft_len = std::nullopt;
  ScriptedSession run(request, HashedScript(DraftKind::kPerfect));
  run.Run();
  EXPECT_EQ(run.n_draft_rows, 0);
  EXPECT_TRUE(run.compressions.empty());
}

TEST(SessionAuto, CompressesNothingThatIsNotExpectedToPay) {
  Request request = MakeRequest(1000, 400);
  request.draft_len = std::nullopt;
  // The draft KV saves nothing of a step that weights dominate.
  ScriptedSession heavy(request, HashedScript(DraftKind::kPerfect),
                        {.weight_bytes = size_t{1} << 30});
  heavy.Run();
  EXPECT_TRUE(heavy.compressions.empty());
  EXPECT_EQ(heavy.n_draft_rows, 0);
  // A short answer does not earn the compression back.
  request.max_tokens = 40;
  ScriptedSession brief(request, HashedScript(DraftKind::kPerfect));
  brief.Run();
  EXPECT_TRUE(brief.compressions.empty());
  // Who fixes the length has decided.
  request.draft_len = 7;
  ScriptedSession fixed(request, HashedScript(DraftKind::kPerfect),
                        {.weight_bytes = size_t{1} << 30});
  fixed.Run();
  EXPECT_EQ(fixed.compressions.size(), 1u);
}

// Scoring with the queries of 256 tokens costs more than a window of 64 does, and than this answer
// earns.
TEST(SessionAuto, CountsTheWindowThatTheMethodScores) {
  Request request = MakeRequest(1000, 250);
  request.draft_len = std::nullopt;
  for (const auto& [n_window, compresses] : {std::pair{64, true}, std::pair{256, false}}) {
    ScriptedSession run(
        request, HashedScript(DraftKind::kPerfect),
        {.traits = {
             .name = "recording", .needs = compress::Needs::kWindowQueries, .n_window = n_window}});
    run.Run();
    EXPECT_EQ(!run.compressions.empty(), compresses) << n_window;
  }
}

}  // namespace
}  // namespace vericache::decode
