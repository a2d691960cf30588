// Sampler filters and penalties from libllama, behind one call: logits in, surviving candidates
// out. Temperature and noise are ours (decode/sampler.h; docs/numerics.md section 5).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace vericache::model {

struct FilterParams {
  int top_k = 0;       // 0: off
  float top_p = 1.0f;  // 1: off
  float min_p = 0.0f;  // 0: off
  float repeat_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  int penalty_last_n = 64;
  std::vector<std::pair<TokenId, float>> logit_bias = {};
};

struct Candidate {
  TokenId id;
  float logit;
};

// Holds the state that depends on committed tokens (penalties). Copyable through Clone: a verify
// clones it and advances the clone to the mismatch; the drafter has its own.
class Filters {
 public:
  virtual ~Filters() = default;
  static std::unique_ptr<Filters> Make(const FilterParams& params, int n_vocab);

  virtual std::unique_ptr<Filters> Clone() const = 0;
  // Candidates left after bias, penalties and filters, in that order. Never empty.
  virtual void Apply(std::span<const float> logits, std::vector<Candidate>& out) = 0;
  virtual void Accept(TokenId token) = 0;
  // Nothing to do but pass all logits through: the caller may skip Apply.
  virtual bool IsPassThrough() const = 0;
};

}  // namespace vericache::model
