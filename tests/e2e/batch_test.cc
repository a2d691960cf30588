// Goal:   what shares a pass never changes an answer (I3): requests of every kind at once equal
//         their solo runs, over and over (D1).
// Method: eight equal and eight different requests submitted together, several rounds, against one
//         engine that answered them one by one.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/solo_run.h"
#include "tests/support/tiny_model_file.h"

namespace vericache {
namespace {

using testing_support::Answer;
using testing_support::Ask;
using testing_support::MakeEngine;
using testing_support::RandomPrompt;
using testing_support::ReadAnswer;

// Eight equal requests, then eight that differ in everything a request has.
std::vector<decode::Request> Requests() {
  decode::Request base;
  base.prompt = RandomPrompt(530, 1);
  base.max_tokens = 24;
  base.ignore_eos = true;
  base.hash_logits = true;
  base.compressor = "kivi:bits=4";
  base.draft_len = 6;
  std::vector<decode::Request> requests(8, base);
  const char* specs[] = {"identity", "streaming", "snapkv",      "kivi:bits=2",
                         "centroid", "hostile",   "kivi:bits=8", "snapkv+kivi:bits=4"};
  for (int i = 0; i < 8; ++i) {
    decode::Request request = base;
    request.prompt = RandomPrompt(1 + 97 * i, static_cast<uint64_t>(10 + i));
    request.compressor = specs[i];
    request.draft_len = i % 3 == 0 ? std::nullopt : std::optional<int>(3 * i);
    request.mode = i == 3   ? decode::Mode::kFull
                   : i == 6 ? decode::Mode::kLossy
                            : decode::Mode::kVerified;
    request.sampling = {.temperature = i % 2 == 0 ? 0.0f : 0.8f, .seed = static_cast<uint64_t>(i)};
    request.max_tokens = 12 + 5 * i;
    requests.push_back(request);
  }
  return requests;
}

TEST(Batch, EqualAndDifferentRequestsAtOnceEqualTheirSoloRuns) {
  const testing_support::TinyModelFile file;
  const auto engine = MakeEngine({.model_path = file.Path(), .n_threads = 2, .prefill_chunk = 100});
  const std::vector<decode::Request> requests = Requests();
  std::vector<Answer> solo;
  for (const decode::Request& request : requests) solo.push_back(Ask(*engine, request));
  for (size_t i = 1; i < 8; ++i) EXPECT_EQ(solo[i], solo[0]);
  EXPECT_NE(solo[8], solo[9]);

  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<engine::Stream>> streams;
    for (size_t i = 0; i < requests.size(); ++i) {  // in another order each time
      streams.push_back(*engine->Submit(requests[(i * 7 + static_cast<size_t>(round)) % 16]));
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(ReadAnswer(*streams[i]), solo[(i * 7 + static_cast<size_t>(round)) % 16])
          << "round " << round << ", request " << (i * 7 + static_cast<size_t>(round)) % 16;
    }
  }
}

}  // namespace
}  // namespace vericache
