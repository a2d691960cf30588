// What a user asks of one generation, and what came of it. Plain values; validated once, by
// ValidateRequest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "decode/xtc.h"
#include "model/filters.h"

namespace vericache::decode {

struct KeptKv;  // decode/kept_kv.h

enum class Mode : uint8_t {
  kFull,      // plain decoding over the full KV: the definition of the answer
  kLossy,     // compressed KV only; the text may differ from kFull's
  kVerified,  // compressed drafts, full KV verifies; the text equals kFull's
};

// Who proposes the tokens that mode kVerified verifies.
enum class DrafterKind : uint8_t {
  kKv,     // the model over its compressed KV
  kNgram,  // what followed the newest tokens when they occurred before; nothing is compressed
  kBoth,   // what kNgram proposes, as far as kKv agrees, and on from there; kNgram alone where
           // auto drafts nothing over the compressed KV
  kGiven,  // Request::given, an answer that is known: a replay
};

struct SamplingParams {
  float temperature = 0.0f;  // 0: greedy
  uint64_t seed = 0;
  uint32_t choice = 0;  // which of several answers to one prompt; each has noise of its own
  model::FilterParams filters{};
  XtcParams xtc{};
};

// Bounds the rows of one verify (draft_len + 1), hence the logits that a pass holds at once.
inline constexpr int kMaxDraftLen = 127;
inline constexpr int kMaxStopStrings = 16;
inline constexpr size_t kMaxDryBreakerBytes = 40;  // what libllama does not cut off
inline constexpr int kMaxLogprobs = 100;

struct Request {
  std::vector<TokenId> prompt;  // not empty
  Mode mode = Mode::kVerified;
  DrafterKind drafter = DrafterKind::kKv;
  std::vector<TokenId> given{};         // of kGiven; nothing else depends on it
  std::string compressor = "identity";  // spec (compress/registry.h)
  std::optional<int> draft_len;         // nullopt: auto
  SamplingParams sampling;
  int max_tokens = -1;            // -1: until the end of text or context; 0: prefill only
  std::vector<std::string> stop;  // the text ends before the first one that is complete
  bool ignore_eos = false;        // an end-of-generation token is one like any other
  int n_logprobs = -1;            // alternatives per token (0: the token alone); -1: none
  bool hash_logits = false;       // Stats::logits_hash covers every committed row
  // The KV of an earlier answer of the same engine: tokens that the prompt begins with are not
  // prefilled again.
  std::shared_ptr<const KeptKv> prefix{};
  bool keep_kv = false;  // the end of the answer hands over its full KV (lossy: the prompt's)
};

struct TokenLogprob {
  TokenId id;
  float logprob = 0;
};
struct TokenLogprobs {
  TokenLogprob token;             // the committed one
  std::vector<TokenLogprob> top;  // the likeliest, best first
};

enum class FinishReason : uint8_t {
  kNone,
  kEos,
  kStop,
  kLength,
  kContext,
  kGrammar,  // the grammar, or biases of -infinity, allow no token
  kCancelled,
  kError
};

struct Stats {
  int prompt_tokens = 0;
  int reused_tokens = 0;     // of the prompt, from Request::prefix
  int generated_tokens = 0;  // committed ones, the end-of-generation token included
  double prefill_s = 0;
  double decode_s = 0;    // from the first token to the last
  double compress_s = 0;  // part of decode_s spent compressing
  int n_compressions = 0;
  int rounds = 0;  // verify passes over drafted tokens
  // Over all rounds; a draft that was cut short by its own length, an end of text or a limit counts
  // what it drafted. Accepted tokens are committed tokens.
  int64_t drafted = 0;
  int64_t accepted = 0;
  // Of tokens that were looked up: run as rows, of the verify or (kBoth) of a draft pass, and kept
  // by that pass.
  int64_t looked_up = 0;
  int64_t looked_up_kept = 0;
  size_t kv_full_bytes = 0;   // of the tokens held, at their most
  size_t kv_draft_bytes = 0;  // body and tail that a draft step reads, at the last draft
  uint64_t logits_hash = 0;   // of the logits of all committed rows, in order; 0 if not asked for
};

// Whether this request may compress: auto does where it is expected to pay.
inline bool UsesCompressor(const Request& request) {
  return request.mode == Mode::kLossy ||
         (request.mode == Mode::kVerified &&
          (request.drafter == DrafterKind::kKv || request.drafter == DrafterKind::kBoth));
}

// What a model offers to requests.
struct RequestLimits {
  int n_vocab = 0;
  int n_context = 0;  // tokens of prompt and answer together
};

// Errors: kInvalidArgument, naming the field, its value and what would be right. The compressor's
// spec is checked by whoever makes the compressor.
Status ValidateRequest(const Request& request, const RequestLimits& limits);

}  // namespace vericache::decode
