// Goal: replaying a known answer gives what plain decoding gives, whatever is claimed to be the
// answer; a right claim is confirmed in as few passes as the widest draft allows.
// Method: scripted truths; claims that are right, wrong at every place, cut, prolonged or empty;
// mode full on the same script is the oracle.

#include <gtest/gtest.h>

#include "tests/support/scripted_session.h"

namespace vericache::decode {
namespace {

using testing_support::ExpectSameAsFull;
using testing_support::Script;
using testing_support::ScriptedOptions;
using testing_support::ScriptedSession;
using testing_support::Values;

Script Truth() { return testing_support::HashedScript(testing_support::DraftKind::kPerfect); }

Request Asked(int max_tokens) {
  Request request = testing_support::MakeRequest(60, max_tokens);
  request.draft_len.reset();
  request.sampling = {.temperature = 0.8f, .seed = 3};
  return request;
}

std::vector<TokenId> FullAnswer(Request request, const Script& script) {
  request.mode = Mode::kFull;
  ScriptedSession full(request, script);
  full.Run();
  return full.tokens;
}

Request Replay(Request request, std::vector<TokenId> given) {
  request.drafter = DrafterKind::kGiven;
  request.given = std::move(given);
  return request;
}

TEST(SessionGiven, ConfirmsARightAnswerInFewWidePasses) {
  const Request asked = Asked(300);
  const std::vector<TokenId> answer = FullAnswer(asked, Truth());
  ScriptedSession replay(Replay(asked, answer), Truth());
  replay.Run();
  EXPECT_EQ(Values(replay.tokens), Values(answer));
  // The first token is the prompt's last row; then 127 + 1 tokens a pass.
  EXPECT_EQ(replay.verify_rows, (std::vector<int>{128, 128, 43}));
  EXPECT_EQ(replay.Get().GetStats().rounds, 3);
  EXPECT_TRUE(replay.compressions.empty());
  EXPECT_EQ(replay.n_draft_passes, 0);
}

TEST(SessionGiven, EqualsPlainForEveryPlaceOfAWrongToken) {
  const Request asked = Asked(30);
  const std::vector<TokenId> answer = FullAnswer(asked, Truth());
  for (size_t place = 0; place < answer.size(); ++place) {
    std::vector<TokenId> wrong = answer;
    wrong[place] = TokenId{(wrong[place].value + 1) % 250};
    ExpectSameAsFull(Replay(asked, wrong), Truth());
  }
}

TEST(SessionGiven, EqualsPlainForClaimsTooShortAndTooLong) {
  const Request asked = Asked(30);
  const std::vector<TokenId> answer = FullAnswer(asked, Truth());
  for (const size_t n : {0u, 1u, 2u, 29u, 31u, 500u}) {
    std::vector<TokenId> claim = answer;
    claim.resize(n, TokenId{5});
    ExpectSameAsFull(Replay(asked, claim), Truth());
  }
}

// An end of text in the middle of the claim, right or wrong; a stop string; memory of penalties.
TEST(SessionGiven, EndsWherePlainDecodingEnds) {
  const auto ends = [](std::span<const TokenId> seen, bool, std::span<float> logits) {
    testing_support::FillHashedLogits(seen, 250, logits);
    if (seen.size() == 75) testing_support::Prefer(logits, 299);
  };
  Request asked = Asked(40);
  const std::vector<TokenId> answer = FullAnswer(asked, ends);
  ASSERT_EQ(answer.back().value, 299);
  ExpectSameAsFull(Replay(asked, answer), ends);
  std::vector<TokenId> early = answer;
  early[4] = TokenId{299};
  ExpectSameAsFull(Replay(asked, early), ends);
  asked.ignore_eos = true;
  ExpectSameAsFull(Replay(asked, answer), ends);

  asked.sampling.filters = {.top_k = 12, .repeat_penalty = 1.3f};
  asked.stop = {std::string(1, static_cast<char>(answer[9].value))};
  ExpectSameAsFull(Replay(asked, FullAnswer(asked, Truth())), Truth());
}

TEST(SessionGiven, IsOfNoUseInModeFull) {
  Request asked = Asked(20);
  asked.mode = Mode::kFull;
  ScriptedSession full(Replay(asked, FullAnswer(asked, Truth())), Truth());
  full.Run();
  EXPECT_EQ(full.verify_rows, std::vector<int>(19, 1));
}

}  // namespace
}  // namespace vericache::decode
