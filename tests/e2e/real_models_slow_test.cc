// Goal: the claim of identity_test.cc on real models and long prompts of five kinds.
// Method: SmolLM2-135M and Qwen2.5-Coder-0.5B; answers in mode verified against mode full,
// tokens and logits. By default every prompt with two methods on the small model and one prompt
// on the larger; VERICACHE_REAL_GRID=all, or names of prompts with commas between, runs those with
// every method, 256 tokens, temperatures 0 and 0.8, on both. Prints what was accepted.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "model/chat_template.h"
#include "tests/support/answers.h"
#include "tests/support/identity_case.h"
#include "tests/support/real_model.h"

namespace vericache {
namespace {

using testing_support::Answer;

constexpr const char* kSmallModel = "smollm2-135m";
constexpr const char* kPrompts[] = {"licence", "code_edit", "json", "dialogue", "german"};

// Short ones: the fewest rows for a token, and identity does not depend on it.
constexpr int kDraftLen = 5;

std::string Grid() {
  const char* grid = std::getenv("VERICACHE_REAL_GRID");
  return grid != nullptr ? grid : "";
}

bool IsInGrid(const std::string& prompt) {
  return Grid() == "all" || ("," + Grid() + ",").find("," + prompt + ",") != std::string::npos;
}

std::string ReadPrompt(const std::string& name) {
  std::ifstream file(std::string(VERICACHE_SOURCE_DIR "/eval/prompts/") + name + ".txt");
  return {std::istreambuf_iterator<char>(file), {}};
}

class RealModels : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = testing_support::RealModelPath(GetParam());
    ASSERT_FALSE(HasFailure());
    engine_ = testing_support::MakeEngine({.model_path = path});
    auto chat_template = model::ChatTemplate::Load(path, "");
    ASSERT_TRUE(chat_template.has_value()) << chat_template.error().message;
    template_ = *std::move(chat_template);
  }

  decode::Request RequestFor(const std::string& prompt) {
    decode::Request request;
    auto tokens = template_->Apply({{.role = "user", .content = ReadPrompt(prompt)}}, true,
                                   engine_->GetTokenizer());
    EXPECT_TRUE(tokens.has_value());
    request.prompt = *std::move(tokens);
    request.sampling.seed = 1234;
    request.max_tokens = Grid().empty() ? 64 : 256;
    request.ignore_eos = true;
    request.hash_logits = true;
    return request;
  }

  // All methods at once, each a session of its own that begins with the kept KV of the prompt.
  void Check(const std::string& prompt, std::span<const float> temperatures,
             std::span<const std::string> specs) {
    decode::Request request = RequestFor(prompt);
    EXPECT_GE(request.prompt.size(), 3000u) << prompt;
    for (const float temperature : temperatures) {
      request.sampling.temperature = temperature;
      request.mode = decode::Mode::kFull;
      request.keep_kv = true;
      auto plain = engine_->Submit(request);
      ASSERT_TRUE(plain.has_value()) << plain.error().message;
      std::shared_ptr<const decode::KeptKv> kept;
      const Answer full = testing_support::ReadAnswer(**plain, &kept);
      ASSERT_EQ(full.tokens.size(), static_cast<size_t>(request.max_tokens));
      request.prefix = std::move(kept);
      request.keep_kv = false;
      request.mode = decode::Mode::kVerified;
      std::vector<std::unique_ptr<engine::Stream>> streams;
      for (const std::string& spec : specs) {
        request.compressor = spec;
        request.draft_len = spec == "hostile" ? 1 : kDraftLen;
        auto stream = engine_->Submit(request);
        ASSERT_TRUE(stream.has_value()) << stream.error().message;
        streams.push_back(*std::move(stream));
      }
      for (size_t i = 0; i < specs.size(); ++i) {
        const Answer verified = testing_support::ReadAnswer(*streams[i]);
        EXPECT_EQ(verified, full) << prompt << " " << specs[i] << " T " << temperature;
        Report(prompt, specs[i], temperature, verified.stats);
      }
    }
  }

  void Report(const std::string& prompt, const std::string& spec, float temperature,
              const decode::Stats& stats) {
    EXPECT_GT(stats.drafted, 0);
    if (spec == "identity") {
      EXPECT_EQ(stats.accepted, stats.drafted) << prompt;
    }
    fmt::print("{} {} {} T {}: {} rounds, accepted {} of {} drafted\n", GetParam(), prompt, spec,
               temperature, stats.rounds, stats.accepted, stats.drafted);
    std::fflush(stdout);
  }

  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<model::ChatTemplate> template_;
};

TEST_P(RealModels, VerifiedEqualsFullOnLongPrompts) {
  const std::vector<std::string> specs = testing_support::IdentitySpecs();
  constexpr float kTemperatures[] = {0.0f, 0.8f};
  for (size_t i = 0; i < std::size(kPrompts); ++i) {
    const std::string prompt = kPrompts[i];
    if (!Grid().empty()) {
      if (IsInGrid(prompt)) Check(prompt, kTemperatures, specs);
    } else if (GetParam() == std::string_view(kSmallModel) || prompt == "german") {
      // Other methods and another temperature for each prompt.
      const std::string some[] = {specs[(2 * i) % specs.size()], specs[(2 * i + 1) % specs.size()]};
      Check(prompt, std::span(kTemperatures).subspan(i % 2, 1), some);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RealModels, ::testing::Values(kSmallModel, "qwen2.5-coder-0.5b"),
                         [](const auto& tested) {
                           return std::string(tested.index == 0 ? "SmolLM2" : "Qwen05B");
                         });

}  // namespace
}  // namespace vericache
