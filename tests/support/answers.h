// Whole answers from an engine's streams.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/engine.h"

namespace vericache::testing_support {

struct Answer {
  std::vector<int> tokens;
  std::string text;
  std::vector<decode::TokenLogprobs> logprobs;
  decode::FinishReason reason = decode::FinishReason::kNone;
  Error error{};
  decode::Stats stats;

  // What must not depend on anything but the request. A hash of 0 was not asked for.
  bool operator==(const Answer& other) const {
    return tokens == other.tokens && text == other.text && reason == other.reason &&
           error.message == other.error.message && stats.logits_hash == other.stats.logits_hash;
  }
};

inline void PrintTo(const Answer& answer, std::ostream* out) {
  *out << answer.tokens.size() << " tokens, reason " << static_cast<int>(answer.reason) << ", hash "
       << answer.stats.logits_hash << ", error '" << answer.error.message << "':";
  for (const int token : answer.tokens) *out << ' ' << token;
}

// kept, if given: the KV that the request asked to keep.
inline Answer ReadAnswer(engine::Stream& stream,
                         std::shared_ptr<const decode::KeptKv>* kept = nullptr) {
  Answer answer;
  engine::Event event;
  while (stream.Next(event)) {
    for (const TokenId token : event.tokens) answer.tokens.push_back(token.value);
    answer.text += event.text;
    answer.logprobs.insert(answer.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    answer.reason = event.reason;
    answer.error = event.error;
    answer.stats = event.stats;
    if (kept != nullptr) *kept = event.kept;
  }
  return answer;
}

inline Answer Ask(engine::Engine& engine, const decode::Request& request) {
  auto stream = engine.Submit(request);
  VC_CHECK(stream.has_value(), "{}", stream.error().message);
  return ReadAnswer(**stream);
}

inline std::unique_ptr<engine::Engine> MakeEngine(const engine::EngineOptions& options) {
  auto engine = engine::Engine::Create(options);
  VC_CHECK(engine.has_value(), "{}", engine.error().message);
  return *std::move(engine);
}

}  // namespace vericache::testing_support
