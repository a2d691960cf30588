// Goal: the public face: options and requests out of range are refused in one clear sentence, a
// request gives its events and its answer, modes agree, wrong weights fail the request only.
// Method: tiny models in files.

#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "tests/support/answers.h"
#include "tests/support/solo_run.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::engine {
namespace {

using testing_support::Answer;
using testing_support::Ask;
using testing_support::MakeEngine;
using testing_support::RandomPrompt;
using testing_support::TinyModelFile;

const std::string& TinyPath() {
  static const TinyModelFile* file = new TinyModelFile();
  return file->Path();
}

EngineOptions Options() { return {.model_path = TinyPath(), .n_threads = 1}; }

decode::Request MakeRequest(int n_prompt, int max_tokens) {
  decode::Request request;
  request.prompt = RandomPrompt(n_prompt, 7);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  request.hash_logits = true;
  return request;
}

void ExpectCreateRefused(const EngineOptions& options, ErrorCode code, std::string_view text) {
  const auto engine = Engine::Create(options);
  ASSERT_FALSE(engine.has_value()) << text;
  EXPECT_EQ(engine.error().code, code);
  EXPECT_NE(engine.error().message.find(text), std::string::npos) << engine.error().message;
}

TEST(Engine, RefusesOptionsOutOfRange) {
  const auto refused = [](auto spoil, std::string_view text) {
    EngineOptions options = Options();
    spoil(options);
    ExpectCreateRefused(options, ErrorCode::kInvalidArgument, text);
  };
  refused([](EngineOptions& o) { o.n_threads = -1; }, "n_threads");
  refused([](EngineOptions& o) { o.prefill_chunk = 0; }, "prefill_chunk");
  refused([](EngineOptions& o) { o.max_sessions = 0; }, "max_sessions");
  refused([](EngineOptions& o) { o.max_waiting = -1; }, "max_waiting");
  refused([](EngineOptions& o) { o.n_context = 1000000; }, "n_context");
  refused([](EngineOptions& o) { o.n_context = -1; }, "n_context");
  refused([](EngineOptions& o) { o.fast_kv_bytes = 1000; }, "fast_kv_bytes");
  refused([](EngineOptions& o) { o.isa = "sse9"; }, "sse9");
}

TEST(Engine, RefusesAMissingModel) {
  EngineOptions options = Options();
  options.model_path = "/nowhere/model.gguf";
  ExpectCreateRefused(options, ErrorCode::kNotFound, "/nowhere/model.gguf");
}

TEST(Engine, RefusesRequestsOutOfRange) {
  const auto engine = MakeEngine(Options());
  const auto refused = [&](auto spoil, std::string_view text) {
    decode::Request request = MakeRequest(10, 10);
    spoil(request);
    const auto stream = engine->Submit(request);
    ASSERT_FALSE(stream.has_value()) << text;
    EXPECT_EQ(stream.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(stream.error().message.find(text), std::string::npos) << stream.error().message;
  };
  refused([](decode::Request& r) { r.prompt.clear(); }, "empty");
  refused([](decode::Request& r) { r.prompt = RandomPrompt(4096, 1); }, "4096");
  refused([](decode::Request& r) { r.max_tokens = -5; }, "max_tokens");
  refused([](decode::Request& r) { r.sampling.temperature = -1; }, "temperature");
  refused([](decode::Request& r) { r.compressor = "magic"; }, "magic");
  refused([](decode::Request& r) { r.compressor = "kivi:bots=4"; }, "bots");
  decode::Request kept_elsewhere = MakeRequest(10, 1);
  kept_elsewhere.keep_kv = true;
  std::shared_ptr<const decode::KeptKv> kept;
  testing_support::ReadAnswer(**MakeEngine(Options())->Submit(kept_elsewhere), &kept);
  refused([&](decode::Request& r) { r.prefix = kept; }, "another engine");
}

TEST(Engine, RefusesWhatCanNeverFit) {
  EngineOptions options = Options();
  const auto probe = MakeEngine(options);
  const model::ModelConfig& config = probe->GetModel().Config();
  // Three blocks of every layer: 768 tokens.
  options.fast_kv_bytes =
      3 * kv::BlockLayout(config.Kv()).Bytes() * static_cast<size_t>(config.n_layers);
  const auto engine = MakeEngine(options);
  const auto stream = engine->Submit(MakeRequest(700, 69));
  ASSERT_FALSE(stream.has_value());
  EXPECT_EQ(stream.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(stream.error().message.find("769"), std::string::npos) << stream.error().message;
  EXPECT_NE(stream.error().message.find("768"), std::string::npos) << stream.error().message;
  EXPECT_EQ(Ask(*engine, MakeRequest(700, 68)).tokens.size(), 68u);
  // An answer without a limit ends where the budget does.
  const Answer open = Ask(*engine, MakeRequest(700, -1));
  EXPECT_EQ(open.tokens.size(), 68u);
  EXPECT_EQ(open.reason, decode::FinishReason::kContext);
  EXPECT_FALSE(engine->Submit(MakeRequest(768, -1)).has_value());
}

TEST(Engine, PrefillOnlyGivesNoTokens) {
  const auto engine = MakeEngine(Options());
  const Answer answer = Ask(*engine, MakeRequest(300, 0));
  EXPECT_TRUE(answer.tokens.empty());
  EXPECT_EQ(answer.reason, decode::FinishReason::kLength);
  EXPECT_GT(answer.stats.prefill_s, 0);
}

TEST(Engine, ModesAgreeWhenTheyMust) {
  const auto engine = MakeEngine(Options());
  for (const float temperature : {0.0f, 0.8f}) {
    decode::Request request = MakeRequest(600, 80);
    request.sampling = {.temperature = temperature, .seed = 42};
    request.mode = decode::Mode::kFull;
    const Answer full = Ask(*engine, request);
    EXPECT_EQ(full.tokens.size(), 80u);
    EXPECT_NE(full.stats.logits_hash, 0u);
    request.mode = decode::Mode::kVerified;
    for (const std::optional<int> draft_len : {std::optional<int>(5), std::optional<int>()}) {
      request.draft_len = draft_len;
      for (const char* spec : {"identity", "kivi:bits=2", "hostile"}) {
        request.compressor = spec;
        EXPECT_EQ(Ask(*engine, request), full) << spec;
      }
    }
    request.mode = decode::Mode::kLossy;
    request.compressor = "identity";
    EXPECT_EQ(Ask(*engine, request), full) << "lossy identity";
    request.compressor = "hostile";
    EXPECT_NE(Ask(*engine, request).tokens, full.tokens);
  }
}

TEST(Engine, ReportsWhatItDid) {
  const auto engine = MakeEngine(Options());
  decode::Request request = MakeRequest(600, 60);
  request.draft_len = 6;
  request.n_logprobs = 1;
  const Answer answer = Ask(*engine, request);
  EXPECT_EQ(answer.stats.prompt_tokens, 600);
  EXPECT_EQ(answer.stats.generated_tokens, 60);
  EXPECT_GT(answer.stats.rounds, 0);
  EXPECT_EQ(answer.stats.accepted, answer.stats.drafted);
  EXPECT_GE(answer.stats.n_compressions, 1);
  EXPECT_GT(answer.stats.compress_s, 0);
  EXPECT_LE(answer.stats.compress_s, answer.stats.decode_s);
  EXPECT_EQ(answer.stats.kv_full_bytes,
            659 * kv::FullKvBytesPerToken(engine->GetModel().Config().Kv()));
  EXPECT_GT(answer.stats.kv_draft_bytes, 0u);
  ASSERT_EQ(answer.logprobs.size(), 60u);
  EXPECT_EQ(answer.logprobs[3].token.id.value, answer.tokens[3]);
}

// K3: what another process saved is reused, and the answer is the same to the bit.
TEST(Engine, SavedKvServesAnotherEngine) {
  const testing_support::TempFolder folder;
  const std::string path = folder.Path("kv");
  decode::Request request = MakeRequest(600, 40);
  request.keep_kv = true;
  std::shared_ptr<const decode::KeptKv> kept;
  const auto first = MakeEngine(Options());
  const Answer answer = testing_support::ReadAnswer(**first->Submit(request), &kept);
  ASSERT_TRUE(first->Save(*kept, 639, "a note", path).has_value());

  const auto second = MakeEngine(Options());
  const auto saved = second->Restore(path);
  ASSERT_TRUE(saved.has_value()) << saved.error().message;
  EXPECT_EQ(saved->note, "a note");
  EXPECT_EQ(saved->kept->tokens, kept->tokens);
  request.prefix = saved->kept;
  const Answer again = Ask(*second, request);
  EXPECT_EQ(again, answer);
  EXPECT_EQ(again.stats.reused_tokens, 599);
  EXPECT_EQ(second->Restore(folder.Path("absent")).error().code, ErrorCode::kNotFound);
}

// The audit of an idle engine meets a request on its way in, whose blocks no loop knows yet.
TEST(Engine, TurnsFollowEachOtherAtOnce) {
  const auto engine = MakeEngine(Options());
  decode::Request request = MakeRequest(300, 1);
  request.keep_kv = true;
  std::shared_ptr<const decode::KeptKv> kept;
  for (int turn = 0; turn < 400; ++turn) {
    decode::Request next = request;
    next.prefix = std::move(kept);
    const auto stream = *engine->Submit(std::move(next));
    const Answer answer = testing_support::ReadAnswer(*stream, &kept);
    ASSERT_EQ(answer.stats.reused_tokens, turn == 0 ? 0 : 299);
  }
}

// The same audit, and KV that is being read from a file.
TEST(Engine, RestoresWhileRequestsComeAndGo) {
  const testing_support::TempFolder folder;
  const std::string path = folder.Path("kv");
  decode::Request request = MakeRequest(1500, 1);
  request.keep_kv = true;
  std::shared_ptr<const decode::KeptKv> kept;
  const auto engine = MakeEngine(Options());
  testing_support::ReadAnswer(**engine->Submit(request), &kept);
  ASSERT_TRUE(engine->Save(*kept, 1500, "", path).has_value());
  kept.reset();
  std::atomic<bool> is_over = false;
  std::thread asking([&] {
    while (!is_over) Ask(*engine, MakeRequest(5, 1));
  });
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(engine->Restore(path).has_value());
  is_over = true;
  asking.join();
}

TEST(Engine, AStreamMayOutliveItsEngine) {
  auto engine = MakeEngine(Options());
  auto stream = *engine->Submit(MakeRequest(600, 3000));
  Event event;
  ASSERT_TRUE(stream->Next(event));
  engine.reset();
  EXPECT_EQ(testing_support::ReadAnswer(*stream).reason, decode::FinishReason::kCancelled);
}

TEST(Engine, DroppingAStreamCancelsIt) {
  const auto engine = MakeEngine(Options());
  { const auto stream = *engine->Submit(MakeRequest(600, 3000)); }
  EXPECT_EQ(Ask(*engine, MakeRequest(50, 5)).tokens.size(), 5u);
}

// NaN in weights fails the request with a clear sentence, in every mode; the engine lives on.
TEST(Engine, WrongWeightsFailTheRequest) {
  testing_support::TempFolder folder;
  const std::string path = folder.Path("nan.gguf");
  ASSERT_TRUE(model::WriteTinyModel({.weight_type = "f32"}, path).has_value());
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-64, std::ios::end);
    const std::vector<float> nan(16, std::nanf(""));
    file.write(reinterpret_cast<const char*>(nan.data()), 64);
  }
  const auto engine = MakeEngine({.model_path = path, .n_threads = 1});
  for (const decode::Mode mode :
       {decode::Mode::kFull, decode::Mode::kVerified, decode::Mode::kLossy}) {
    decode::Request request = MakeRequest(80, 10);
    request.mode = mode;
    const Answer answer = Ask(*engine, request);
    EXPECT_EQ(answer.reason, decode::FinishReason::kError);
    EXPECT_NE(answer.error.message.find("NaN"), std::string::npos) << answer.error.message;
    EXPECT_TRUE(answer.tokens.empty());
  }
}

}  // namespace
}  // namespace vericache::engine
