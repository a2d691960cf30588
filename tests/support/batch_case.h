// Requests of every kind at once, for the batch tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "tests/support/answers.h"
#include "tests/support/solo_run.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::testing_support {

// Eight equal requests, then eight that differ in everything a request has.
inline std::vector<decode::Request> BatchRequests(int max_tokens) {
  decode::Request base;
  base.prompt = RandomPrompt(200, 1);
  base.max_tokens = max_tokens;
  base.ignore_eos = true;
  base.hash_logits = true;
  base.compressor = "kivi:bits=4";
  base.draft_len = 6;
  std::vector<decode::Request> requests(8, base);
  const char* specs[] = {"identity", "streaming", "snapkv",      "kivi:bits=2",
                         "centroid", "hostile",   "kivi:bits=8", "snapkv+kivi:bits=4"};
  for (int i = 0; i < 8; ++i) {
    decode::Request request = base;
    request.prompt = RandomPrompt(1 + 75 * i, static_cast<uint64_t>(10 + i));
    request.compressor = specs[i];
    request.draft_len = i % 3 == 0 ? std::nullopt : std::optional<int>(3 * i);
    request.mode = i == 3   ? decode::Mode::kFull
                   : i == 6 ? decode::Mode::kLossy
                            : decode::Mode::kVerified;
    request.sampling = {.temperature = i % 2 == 0 ? 0.0f : 0.8f, .seed = static_cast<uint64_t>(i)};
    request.max_tokens = max_tokens / 2 + 2 * i;
    requests.push_back(request);
  }
  return requests;
}

// Answers each alone, then all at once, `n_rounds` times, in another order each time.
inline void ExpectSoloAnswersInBatches(engine::Engine& engine, int max_tokens, int n_rounds) {
  const std::vector<decode::Request> requests = BatchRequests(max_tokens);
  const size_t n = requests.size();
  std::vector<Answer> solo;
  for (const decode::Request& request : requests) solo.push_back(Ask(engine, request));
  for (size_t i = 1; i < 8; ++i) ASSERT_EQ(solo[i], solo[0]);
  ASSERT_NE(solo[8], solo[9]);

  for (int round = 0; round < n_rounds; ++round) {
    const auto index = [&](size_t i) { return (i * 7 + static_cast<size_t>(round)) % n; };
    std::vector<std::unique_ptr<engine::Stream>> streams;
    for (size_t i = 0; i < n; ++i) streams.push_back(*engine.Submit(requests[index(i)]));
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(ReadAnswer(*streams[i]), solo[index(i)])
          << "round " << round << ", request " << index(i);
    }
  }
}

}  // namespace vericache::testing_support
