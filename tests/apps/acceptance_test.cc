// Goal: a measured acceptance is the one that requests get: the same tokens accepted in the same
// rounds as a session that drafts one by one, bodies made anew on the way included.
// Method: tiny models; sessions in mode verified as oracle. What holds by definition: the identity
// compressor agrees everywhere.

#include "apps/acceptance.h"

#include <gtest/gtest.h>

#include "tests/support/solo_run.h"

namespace vericache::apps {
namespace {

using testing_support::RandomPrompt;
using testing_support::TinyModel;

constexpr int kDraftLen = 6;
constexpr int kEndingPrompt = 300;

class AcceptanceTest : public ::testing::Test {
 protected:
  std::unique_ptr<KnownAnswer> Answer(int n_prompt, int n_answer, uint64_t seed = 3) {
    auto answer = KnownAnswer::Create({.model = &tiny_.Get(),
                                       .tokenizer = &tiny_.GetTokenizer(),
                                       .kernels = *kernels::SelectKernels("auto"),
                                       .team = &team_,
                                       .n_answer = n_answer,
                                       .max_draft_len = kDraftLen},
                                      RandomPrompt(n_prompt, seed));
    EXPECT_TRUE(answer.has_value()) << answer.error().message;
    return *std::move(answer);
  }

  TinyModel tiny_{model::TinyModelSpec{}};
  ThreadTeam team_{1};
};

TEST_F(AcceptanceTest, IsThatOfASession) {
  constexpr int kPrompt = 500;
  constexpr uint64_t kSeed = 81;                    // of a prompt whose answer does not end before
  const auto answer = Answer(kPrompt, 420, kSeed);  // the body is made twice
  ASSERT_EQ(answer->AnswerTokens(), 420);
  int64_t n_accepted = 0;
  for (const char* spec : {"snapkv:keep=0.5", "h2o:keep=0.3", "centroid:keep=0.4", "kivi:bits=2",
                           "streaming:keep=0.6+kivi:bits=4", "hostile"}) {
    const auto measured = answer->Measure(spec, kDraftLen);
    ASSERT_TRUE(measured.has_value()) << measured.error().message;
    // The session ends where the last round does. One that accepted nothing is a plain step there.
    decode::Request request;
    request.prompt = RandomPrompt(kPrompt, kSeed);
    request.compressor = spec;
    request.draft_len = kDraftLen;
    request.max_tokens = static_cast<int>(1 + measured->n_rounds + measured->n_accepted);
    request.ignore_eos = true;
    const auto session = testing_support::RunSolo(tiny_, request);
    EXPECT_EQ(session.stats.accepted, measured->n_accepted) << spec;
    EXPECT_LE(session.stats.rounds, measured->n_rounds) << spec;
    EXPECT_GE(session.stats.rounds, measured->n_rounds - 1) << spec;
    EXPECT_EQ(session.stats.n_compressions, 2) << spec;
    EXPECT_GE(measured->n_rounds + measured->n_accepted, 420) << spec;
    EXPECT_EQ(measured->n_drafted, int64_t{kDraftLen} * measured->n_rounds) << spec;
    EXPECT_GE(measured->n_agreeing, measured->n_accepted) << spec;
    EXPECT_GT(measured->kl_sum, 0) << spec;
    n_accepted += measured->n_accepted;
  }
  EXPECT_GT(n_accepted, 0);
}

// What follows the end of a text is no request's: nothing there is drafted, accepted or counted.
TEST_F(AcceptanceTest, EndsWithTheText) {
  decode::Request request;
  request.mode = decode::Mode::kFull;
  request.max_tokens = 60;
  testing_support::SoloResult full;
  uint64_t seed = 0;
  while (full.reason != decode::FinishReason::kEos || full.tokens.size() < 10) {
    ASSERT_LT(++seed, 400u);
    request.prompt = RandomPrompt(kEndingPrompt, seed);
    full = testing_support::RunSolo(tiny_, request);
  }
  const auto answer = Answer(kEndingPrompt, 60, seed);
  ASSERT_EQ(answer->AnswerTokens(), static_cast<int>(full.tokens.size()));
  for (const char* spec : {"identity", "streaming:keep=0.6", "hostile"}) {
    const auto measured = answer->Measure(spec, kDraftLen);
    ASSERT_TRUE(measured.has_value()) << measured.error().message;
    request.mode = decode::Mode::kVerified;
    request.compressor = spec;
    request.draft_len = kDraftLen;
    const auto session = testing_support::RunSolo(tiny_, request);
    EXPECT_EQ(measured->n_rounds, session.stats.rounds) << spec;
    EXPECT_EQ(measured->n_accepted, session.stats.accepted) << spec;
    EXPECT_LE(measured->n_drafted, int64_t{kDraftLen} * measured->n_rounds) << spec;
    EXPECT_LE(measured->n_agreeing, measured->n_drafted) << spec;
  }
}

TEST_F(AcceptanceTest, OfTheIdentityCompressorIsWhole) {
  const auto answer = Answer(700, 50);
  const auto measured = answer->Measure("identity", kDraftLen);
  ASSERT_TRUE(measured.has_value());
  EXPECT_EQ(measured->n_accepted, measured->n_drafted);
  EXPECT_EQ(measured->n_agreeing, measured->n_drafted);
  EXPECT_NEAR(measured->kl_sum, 0, 1e-3);
  EXPECT_EQ(measured->kv_bytes, answer->FullBytes());
  EXPECT_EQ(measured->compressor, "identity");
}

TEST_F(AcceptanceTest, RefusesWhatIsNoCompressor) {
  const auto measured = Answer(100, 10)->Measure("nope", kDraftLen);
  ASSERT_FALSE(measured.has_value());
  EXPECT_EQ(measured.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(AcceptanceTest, RefusesWhatTheContextDoesNotHold) {
  const int n_context = tiny_.Get().Config().n_context;
  const auto answer = KnownAnswer::Create({.model = &tiny_.Get(),
                                           .tokenizer = &tiny_.GetTokenizer(),
                                           .kernels = *kernels::SelectKernels("auto"),
                                           .team = &team_,
                                           .n_answer = n_context,
                                           .max_draft_len = kDraftLen},
                                          RandomPrompt(10, 3));
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(answer.error().message.find(std::to_string(n_context + 10 + kDraftLen)),
            std::string::npos);
}

}  // namespace
}  // namespace vericache::apps
