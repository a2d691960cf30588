// D5. Another engine's server ignored `seed` (ggml-org/llama.cpp#7381). Right: the same seed gives
// the same text, every 64-bit value is a seed of its own, and no draft has a say.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/solo_run.h"

namespace vericache {
namespace {

using testing_support::Answer;
using testing_support::Ask;

TEST(D5Seed, TheSameSeedGivesTheSameText) {
  const testing_support::TinyModelFile file;
  const auto engine = testing_support::MakeEngine({.model_path = file.Path(), .n_threads = 1});
  std::vector<Answer> answers;
  for (const uint64_t seed :
       {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 32) - 1, uint64_t{1} << 32, ~uint64_t{0}}) {
    decode::Request request;
    request.prompt = testing_support::RandomPrompt(150, 1);
    request.max_tokens = 30;
    request.ignore_eos = true;
    request.hash_logits = true;
    request.draft_len = 5;
    request.compressor = "kivi:bits=2";
    request.sampling = {.temperature = 1.0f, .seed = seed};
    const Answer answer = Ask(*engine, request);
    EXPECT_EQ(Ask(*engine, request), answer) << seed;
    request.mode = decode::Mode::kFull;
    EXPECT_EQ(Ask(*engine, request), answer) << seed;
    for (const Answer& other : answers) EXPECT_NE(other.tokens, answer.tokens) << seed;
    answers.push_back(answer);
  }
}

TEST(D5Seed, ChoicesOfOneSeedDiffer) {
  const testing_support::TinyModelFile file;
  const auto engine = testing_support::MakeEngine({.model_path = file.Path(), .n_threads = 1});
  decode::Request request;
  request.prompt = testing_support::RandomPrompt(20, 1);
  request.max_tokens = 20;
  request.ignore_eos = true;
  request.sampling = {.temperature = 1.0f, .seed = 3};
  const Answer first = Ask(*engine, request);
  request.sampling.choice = 1;
  EXPECT_NE(Ask(*engine, request).tokens, first.tokens);
}

}  // namespace
}  // namespace vericache
