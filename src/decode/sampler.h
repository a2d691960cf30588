// Chooses tokens: (logits, parameters, seed, position, penalties of the committed tokens) -> token.
//
// Greedy takes the highest logit, the lowest id among equals. Otherwise bias, penalties and filters
// (model/filters.h), then the argmax of logit / T plus the position's noise.
//
// The only state is the filters' memory of accepted tokens. A verify clones the session's sampler
// and advances the clone to the mismatch; the drafter has its own clone; so a rejected draft leaves
// no trace.
// Threads: one sampler is used by one thread at a time. Source: docs/numerics.md section 5.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "decode/request.h"
#include "model/filters.h"

namespace vericache::decode {

class Sampler {
 public:
  Sampler(const SamplingParams& params, int n_vocab);

  Sampler Clone() const;
  // The token at `position`. Shapes: logits [n_vocab], finite.
  TokenId Sample(std::span<const float> logits, Position position);
  // `token` is now part of the sequence that penalties look at.
  void Accept(TokenId token);

 private:
  Sampler() = default;

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
