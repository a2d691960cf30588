// Chooses tokens: (logits, parameters, seed, position, penalties of the committed tokens) -> token.
//
// Bias, penalties, grammar and filters (model/filters.h), then XTC, say which tokens may be chosen.
// Of these, greedy takes the highest logit, the lowest id among equals; otherwise it is the argmax
// of logit / T plus the position's noise.
//
// The only state is the filters' memory of accepted tokens. A verify clones the session's sampler
// and advances the clone to the mismatch; the drafter has its own clone; so a rejected draft leaves
// no trace.
// Threads: one sampler is used by one thread at a time. Source: docs/numerics.md section 5.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "decode/request.h"
#include "model/filters.h"
#include "model/tokenizer.h"

namespace vericache::decode {

class Sampler {
 public:
  // Requires: valid parameters (ValidateRequest). The tokenizer must outlive it.
  // Errors: those of a grammar (model/grammar.h).
  static Result<Sampler> Make(const SamplingParams& params, const model::Tokenizer& tokenizer,
                              int n_context);

  Sampler Clone() const;
  // The token at `position`; nullopt if the grammar or the biases allow none.
  // Shapes: logits [n_vocab], finite.
  std::optional<TokenId> Sample(std::span<const float> logits, Position position);
  // `token` is now part of the sequence that penalties look at.
  void AcceptPrompt(TokenId token);
  // The same for a token of the answer, which the grammar looks at as well.
  void Accept(TokenId token);

 private:
  Sampler(const SamplingParams& params, std::unique_ptr<model::Filters> filters)
      : params_(params), filters_(std::move(filters)) {}

  SamplingParams params_;
  std::unique_ptr<model::Filters> filters_;
  std::vector<model::Candidate> candidates_;  // reused
};

// Highest logit, lowest id among equals. Requires: not empty.
TokenId ArgMax(std::span<const float> logits);

// Log probabilities of the model itself, before filters and temperature: of the token and of the n
// likeliest ones, best first, lowest id first among equals.
TokenLogprobs ComputeLogprobs(std::span<const float> logits, TokenId token, int n);

}  // namespace vericache::decode
