// Goal: requests that fit run together, others wait their turn; a cancelled one is gone within
// an iteration in whatever phase it is; every block comes back.
// Method: a loop over a tiny model with a pool of a few blocks; the pool is asked afterwards.

#include "engine/loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "compress/registry.h"
#include "tests/support/solo_run.h"

namespace vericache::engine {
namespace {

using testing_support::RandomPrompt;
using testing_support::TinyModel;
using testing_support::Values;

// Everything a loop needs.
class LoopFixture {
 public:
  explicit LoopFixture(int n_pool_tokens, int max_sessions = 8, int max_waiting = 100)
      : pool_(std::make_shared<kv::BlockPool>(
            Config().Kv(), static_cast<size_t>(n_pool_tokens / kv::kBlockTokens) *
                               static_cast<size_t>(Config().n_layers) *
                               kv::BlockLayout(Config().Kv()).Bytes())),
        pass_(Tiny().Get(), **kernels::SelectKernels("auto"), team_, 256),
        loop_(std::make_unique<Loop>(LoopParts{.team = &team_,
                                               .pool = pool_,
                                               .pass = &pass_,
                                               .budget = {.n_decode = 128, .n_prefill = 128},
                                               .max_sessions = max_sessions,
                                               .max_waiting = max_waiting})) {}

  static const TinyModel& Tiny() {
    static const TinyModel* tiny = new TinyModel({});
    return *tiny;
  }
  static const model::ModelConfig& Config() { return Tiny().Get().Config(); }

  Result<std::shared_ptr<Channel>> Add(decode::Request request) {
    auto compressor = compress::MakeCompressor(request.compressor);
    return Add(std::move(request), *std::move(compressor));
  }
  Result<std::shared_ptr<Channel>> Add(decode::Request request,
                                       std::unique_ptr<compress::Compressor> compressor) {
    LiveRequest live;
    live.channel = std::make_shared<Channel>();
    auto sampler =
        decode::Sampler::Make(request.sampling, Tiny().GetTokenizer(), Config().n_context);
    live.session = std::make_unique<decode::Session>(
        std::move(request), decode::SessionParts{.tokenizer = &Tiny().GetTokenizer(),
                                                 .pool = pool_.get(),
                                                 .sampler = *std::move(sampler),
                                                 .compressor = std::move(compressor),
                                                 .queries = {.n_layers = Config().n_layers,
                                                             .n_heads = Config().n_heads,
                                                             .head_dim = Config().head_dim},
                                                 .n_context = Config().n_context});
    auto channel = live.channel;
    VC_RETURN_IF_ERROR(loop_->Add(std::move(live)));
    return channel;
  }

  void StopLoop() { loop_.reset(); }
  kv::BlockPool& Pool() { return *pool_; }

 private:
  ThreadTeam team_{2};
  std::shared_ptr<kv::BlockPool> pool_;
  model::Pass pass_;
  std::unique_ptr<Loop> loop_;
};

decode::Request MakeRequest(int n_prompt, int max_tokens) {
  decode::Request request;
  request.prompt = RandomPrompt(n_prompt, static_cast<uint64_t>(n_prompt));
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  request.draft_len = 4;
  return request;
}

struct Heard {
  std::vector<TokenId> tokens;
  std::vector<int> prefilled;
  decode::FinishReason reason = decode::FinishReason::kNone;
  Error error{};
  decode::Stats stats;
  std::shared_ptr<const decode::KeptKv> kept{};
};

Heard Listen(Channel& channel) {
  Heard heard;
  Event event;
  while (channel.Pop(event)) {
    if (event.kind == Event::Kind::kPrefill) heard.prefilled.push_back(event.prefilled);
    heard.tokens.insert(heard.tokens.end(), event.tokens.begin(), event.tokens.end());
    heard.reason = event.reason;
    heard.error = event.error;
    heard.stats = event.stats;
    heard.kept = event.kept;
  }
  return heard;
}

TEST(Loop, RunsARequestToItsEnd) {
  LoopFixture fixture(2048);
  const auto channel = fixture.Add(MakeRequest(300, 40));
  const Heard heard = Listen(**channel);
  EXPECT_EQ(heard.tokens.size(), 40u);
  EXPECT_EQ(heard.reason, decode::FinishReason::kLength);
  ASSERT_FALSE(heard.prefilled.empty());
  EXPECT_TRUE(std::is_sorted(heard.prefilled.begin(), heard.prefilled.end()));
  EXPECT_EQ(heard.prefilled.back(), 300);
  EXPECT_EQ(heard.stats.prompt_tokens, 300);
  EXPECT_EQ(heard.stats.generated_tokens, 40);
  EXPECT_GT(heard.stats.prefill_s, 0);
  EXPECT_GT(heard.stats.decode_s, 0);
  fixture.StopLoop();
  EXPECT_EQ(fixture.Pool().LiveCount(), 0);
}

struct Hearing {
  std::promise<void> first_token;  // somebody has it
  bool was_before_compression = false;
};

// Streaming's compressor, which first waits until somebody has the first token, 5 s at most.
class Waiting final : public compress::Compressor {
 public:
  explicit Waiting(Hearing* hearing) : hearing_(hearing) {}
  compress::Traits GetTraits() const override { return inner_->GetTraits(); }
  std::string Spec() const override { return inner_->Spec(); }
  Result<kv::PackedKv> Compress(const compress::Job& job, ThreadTeam& team) const override {
    hearing_->was_before_compression = hearing_->first_token.get_future().wait_for(
                                           std::chrono::seconds(5)) == std::future_status::ready;
    return inner_->Compress(job, team);
  }

 private:
  std::unique_ptr<compress::Compressor> inner_ = *compress::MakeCompressor("streaming");
  Hearing* hearing_;
};

TEST(Loop, TheFirstTokenDoesNotWaitForACompression) {
  LoopFixture fixture(2048);
  Hearing hearing;
  const auto channel = *fixture.Add(MakeRequest(300, 10), std::make_unique<Waiting>(&hearing));
  Event event;
  do {
    ASSERT_TRUE(channel->Pop(event));
  } while (event.tokens.empty());
  hearing.first_token.set_value();
  const size_t n_first = event.tokens.size();
  const Heard rest = Listen(*channel);
  EXPECT_TRUE(hearing.was_before_compression);
  EXPECT_EQ(n_first + rest.tokens.size(), 10u);
  EXPECT_EQ(rest.stats.n_compressions, 1);
}

TEST(Loop, RequestsThatDoNotFitWaitTheirTurn) {
  LoopFixture fixture(512);  // one request of 300 tokens at a time
  std::vector<std::shared_ptr<Channel>> channels;
  for (int i = 0; i < 5; ++i) channels.push_back(*fixture.Add(MakeRequest(280, 20)));
  const Heard first = Listen(*channels[0]);
  for (size_t i = 1; i < channels.size(); ++i) {
    EXPECT_EQ(Values(Listen(*channels[i]).tokens), Values(first.tokens));
  }
  EXPECT_EQ(first.tokens.size(), 20u);
  fixture.StopLoop();
  EXPECT_EQ(fixture.Pool().LiveCount(), 0);
}

TEST(Loop, RefusesWhenTooManyWait) {
  LoopFixture fixture(512, 1, 3);
  std::vector<std::shared_ptr<Channel>> channels;
  bool was_refused = false;
  for (int i = 0; i < 20 && !was_refused; ++i) {
    auto channel = fixture.Add(MakeRequest(280, 200));
    was_refused = !channel.has_value();
    if (was_refused) {
      EXPECT_EQ(channel.error().code, ErrorCode::kResourceExhausted);
    } else {
      channels.push_back(*channel);
    }
  }
  EXPECT_TRUE(was_refused);
  for (const auto& channel : channels) channel->Cancel();
  for (const auto& channel : channels) Listen(*channel);
}

// H10: also during prefill and while queued; H11: only its own.
TEST(Loop, ACancelEndsOnlyItsOwnRequest) {
  LoopFixture fixture(512);
  const auto running = *fixture.Add(MakeRequest(280, 100));
  const auto queued = *fixture.Add(MakeRequest(281, 100));
  const auto behind = *fixture.Add(MakeRequest(282, 30));
  queued->Cancel();
  // Its end does not wait for the request that holds the pool.
  EXPECT_EQ(Listen(*queued).reason, decode::FinishReason::kCancelled);
  EXPECT_EQ(Listen(*running).tokens.size(), 100u);
  EXPECT_EQ(Listen(*behind).tokens.size(), 30u);
}

TEST(Loop, CancelFreesEverythingInEveryPhase) {
  LoopFixture fixture(4096);
  for (int n_events = 0; n_events < 6; ++n_events) {
    const auto channel = *fixture.Add(MakeRequest(1200, 2000));
    Event event;
    for (int i = 0; i < n_events; ++i) ASSERT_TRUE(channel->Pop(event));
    channel->Cancel();
    EXPECT_EQ(Listen(*channel).reason, decode::FinishReason::kCancelled);
  }
  // The pool is whole again: a request that needs all of it runs.
  const auto all = *fixture.Add(MakeRequest(3900, 10));
  EXPECT_EQ(Listen(*all).tokens.size(), 10u);
  fixture.StopLoop();
  EXPECT_EQ(fixture.Pool().LiveCount(), 0);
  fixture.Pool().CheckIntegrity();
}

TEST(Loop, StoppingEndsEveryRequest) {
  LoopFixture fixture(512);
  const auto running = *fixture.Add(MakeRequest(280, 200));
  const auto queued = *fixture.Add(MakeRequest(280, 200));
  Event event;
  ASSERT_TRUE(running->Pop(event));
  fixture.StopLoop();
  EXPECT_EQ(Listen(*running).reason, decode::FinishReason::kCancelled);
  EXPECT_EQ(Listen(*queued).reason, decode::FinishReason::kCancelled);
  EXPECT_EQ(fixture.Pool().LiveCount(), 0);
}

// ---- kept KV ------------------------------------------------------------------------------------
std::shared_ptr<const decode::KeptKv> KeepAnswer(LoopFixture& fixture, int n_prompt) {
  decode::Request request = MakeRequest(n_prompt, 5);
  request.keep_kv = true;
  return Listen(**fixture.Add(std::move(request))).kept;
}

TEST(Loop, KeptKvHoldsItsPartOfThePoolUntilItIsDropped) {
  LoopFixture fixture(1024);
  auto kept = KeepAnswer(fixture, 300);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->tokens.size(), 304u);
  EXPECT_EQ(Listen(**fixture.Add(MakeRequest(30, 5))).kept, nullptr);
  // Idle, with blocks that somebody holds; the loop has freed those of the answers.
  EXPECT_EQ(Listen(**fixture.Add(MakeRequest(400, 5))).tokens.size(), 5u);
  const Heard refused = Listen(**fixture.Add(MakeRequest(600, 5)));
  EXPECT_EQ(refused.reason, decode::FinishReason::kError);
  EXPECT_EQ(refused.error.code, ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.error.message.find("earlier answers keep"), std::string::npos);
  kept.reset();
  EXPECT_EQ(Listen(**fixture.Add(MakeRequest(600, 5))).tokens.size(), 5u);
  fixture.StopLoop();
  EXPECT_EQ(fixture.Pool().LiveCount(), 0);
}

// What waiting requests share with earlier answers is given up before a request fails.
TEST(Loop, APrefixThatDoesNotFitIsForgotten) {
  LoopFixture fixture(1024);
  decode::Request second = MakeRequest(300, 5);
  second.prefix = KeepAnswer(fixture, 300);
  // The first takes the loop's time until the second waits behind it.
  const auto running = *fixture.Add(MakeRequest(200, 300));
  const auto all = *fixture.Add(MakeRequest(900, 5));
  const auto sharing = *fixture.Add(std::move(second));
  EXPECT_EQ(Listen(*running).tokens.size(), 300u);
  EXPECT_EQ(Listen(*all).tokens.size(), 5u);
  const Heard heard = Listen(*sharing);
  EXPECT_EQ(heard.tokens.size(), 5u);
  EXPECT_EQ(heard.stats.reused_tokens, 0);
  EXPECT_EQ(heard.prefilled.back(), 300);
}

TEST(Loop, ACancelledAnswerKeepsWhatItHas) {
  LoopFixture fixture(4096);
  decode::Request request = MakeRequest(300, 2000);
  request.keep_kv = true;
  const auto channel = *fixture.Add(request);
  Event event;
  do {
    ASSERT_TRUE(channel->Pop(event));
  } while (event.kind == Event::Kind::kPrefill);
  channel->Cancel();
  const Heard heard = Listen(*channel);
  ASSERT_TRUE(heard.kept);
  request.max_tokens = 5;
  request.prefix = heard.kept;
  request.prompt = heard.kept->tokens;
  const Heard next = Listen(**fixture.Add(request));
  EXPECT_EQ(next.stats.reused_tokens, static_cast<int>(request.prompt.size()) - 1);
}

}  // namespace
}  // namespace vericache::engine
