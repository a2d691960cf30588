// What a user asks of one generation, and what came of it. Plain values; validated once, by Validate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/filters.h"

namespace vericache::decode {

enum class Mode : uint8_t {
  kFull,      // plain decoding over the full KV: the definition of the answer
  kLossy,     // compressed KV only; the text may differ from kFull's
  kVerified,  // compressed drafts, full KV verifies; the text equals kFull's
};

struct SamplingParams {
  float temperature = 0.0f;  // 0: greedy
  uint64_t seed = 0;
  model::FilterParams filters;
};

struct Request {
  std::vector<TokenId> prompt;           // not empty
  Mode mode = Mode::kVerified;
  std::string compressor = "identity";   // spec (compress/registry.h)
  std::optional<int> draft_len;          // nullopt: auto
  SamplingParams sampling;
  int max_tokens = -1;                   // -1: until the end of text or context; 0: prefill only
  std::vector<std::string> stop;         // stop strings; the text ends before the first one
  bool ignore_eos = false;
  int n_logprobs = 0;                    // alternatives per token; 0: none
};

enum class FinishReason : uint8_t { kNone, kEos, kStop, kLength, kContext, kCancelled, kError };

struct Stats {
  int prompt_tokens = 0;
  int generated_tokens = 0;
  double prefill_s = 0;
  double decode_s = 0;           // from the first token to the last
  double compress_s = 0;         // part of decode_s spent compressing
  int rounds = 0;                // verify passes
  int64_t drafted = 0;
  int64_t accepted = 0;
  size_t kv_full_bytes = 0;      // of the tokens held
  size_t kv_draft_bytes = 0;     // body and tail that a draft step reads
};

}  // namespace vericache::decode
