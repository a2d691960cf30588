// What may be chosen next, by libllama's samplers behind one call: logits in, surviving candidates
// out. Temperature and noise are ours (decode/sampler.h; docs/numerics.md section 5).
//
// Order and defaults are llama.cpp's: bias, penalties, DRY; the grammar; top-n-sigma, top-k,
// typical, top-p, min-p.
// Threads: an object is used by one thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/tokenizer.h"

namespace vericache::model {

struct FilterParams {
  int top_k = 0;             // 0: off
  float top_p = 1.0f;        // 1: off
  float min_p = 0.0f;        // 0: off
  float typical_p = 1.0f;    // 1: off
  float top_n_sigma = 0.0f;  // 0: off
  float repeat_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  int penalty_last_n = 64;      // -1: the context
  float dry_multiplier = 0.0f;  // 0: off
  float dry_base = 1.75f;
  int dry_allowed_length = 2;
  int dry_last_n = 64;  // -1: the context
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};
  std::vector<std::pair<TokenId, float>> logit_bias = {};
  std::string grammar = {};  // GBNF; empty: none
};

struct Candidate {
  TokenId id;
  float logit;
};

// Holds the state that depends on committed tokens (penalties, DRY, grammar). Copyable through
// Clone: a verify clones it and advances the clone to the mismatch; the drafter has its own.
class Filters {
 public:
  virtual ~Filters() = default;
  // n_context is what -1 stands for. The tokenizer must outlive it.
  // Errors: those of Grammar::Parse.
  static Result<std::unique_ptr<Filters>> Make(const FilterParams& params,
                                               const Tokenizer& tokenizer, int n_context);

  virtual std::unique_ptr<Filters> Clone() const = 0;
  // Candidates left, in any order. None are left if the grammar, or biases of -infinity, allow no
  // token at all.
  virtual void Apply(std::span<const float> logits, std::vector<Candidate>& out) = 0;
  virtual void AcceptPrompt(TokenId token) = 0;
  // A token of the answer: the grammar, too, takes note of it. Requires: Apply left it.
  virtual void Accept(TokenId token) = 0;
  // Nothing to do but pass all logits through: the caller may skip Apply.
  virtual bool IsPassThrough() const = 0;
};

}  // namespace vericache::model
