#include "model/filters.h"

#include <llama.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "model/grammar.h"

namespace vericache::model {
namespace {

struct SamplerDeleter {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using Chain = std::unique_ptr<llama_sampler, SamplerDeleter>;
using Candidates = std::vector<llama_token_data>;

// libllama's typical filter takes logarithms of F32 probabilities; what is this far below the
// likeliest might have none. It is never typical.
constexpr float kTypicalReach = 80.0f;
// How many of the likeliest tokens a grammar is asked about at first.
constexpr size_t kFirstAsked = 256;

Chain EmptyChain() { return Chain(llama_sampler_chain_init({.no_perf = true})); }
Chain CloneChain(const Chain& chain) { return Chain(llama_sampler_clone(chain.get())); }

bool HasPenalties(const FilterParams& params) {
  return params.penalty_last_n > 0 &&
         (params.repeat_penalty != 1.0f || params.presence_penalty != 0.0f ||
          params.frequency_penalty != 0.0f);
}

bool HasDry(const FilterParams& params) {
  return params.dry_multiplier > 0.0f && params.dry_last_n > 0;
}

llama_sampler* MakeDry(const FilterParams& params, const Tokenizer& tokenizer) {
  VC_CHECK(params.dry_breakers.empty() || tokenizer.Vocab() != nullptr,
           "sequence breakers need libllama's vocabulary");
  std::vector<const char*> breakers;
  for (const std::string& breaker : params.dry_breakers) breakers.push_back(breaker.c_str());
  return llama_sampler_init_dry(tokenizer.Vocab(), params.dry_multiplier, params.dry_base,
                                params.dry_allowed_length, params.dry_last_n, breakers.data(),
                                breakers.size());
}

// What changes single logits.
Chain MakeAdjusting(const FilterParams& params, const Tokenizer& tokenizer) {
  Chain chain = EmptyChain();
  const auto add = [&](llama_sampler* sampler) { llama_sampler_chain_add(chain.get(), sampler); };
  const int n_vocab = tokenizer.VocabSize();
  if (!params.logit_bias.empty()) {
    std::vector<llama_logit_bias> biases;
    for (const auto& [token, bias] : params.logit_bias) biases.push_back({token.value, bias});
    add(llama_sampler_init_logit_bias(n_vocab, static_cast<int32_t>(biases.size()), biases.data()));
  }
  if (HasPenalties(params)) {
    add(llama_sampler_init_penalties(n_vocab, params.penalty_last_n, params.repeat_penalty,
                                     params.frequency_penalty, params.presence_penalty));
  }
  if (HasDry(params)) add(MakeDry(params, tokenizer));
  return chain;
}

// What leaves fewer candidates, in this order; without state, so clones share it.
struct Narrowing {
  Chain widest = EmptyChain();  // top-n-sigma, top-k
  Chain typical = EmptyChain();
  Chain rest = EmptyChain();  // top-p, min-p

  bool IsEmpty() const {
    return llama_sampler_chain_n(widest.get()) + llama_sampler_chain_n(typical.get()) +
               llama_sampler_chain_n(rest.get()) ==
           0;
  }
};

std::shared_ptr<const Narrowing> MakeNarrowing(const FilterParams& params) {
  const auto add = [](const Chain& chain, llama_sampler* sampler) {
    llama_sampler_chain_add(chain.get(), sampler);
  };
  auto narrowing = std::make_shared<Narrowing>();
  if (params.top_n_sigma > 0.0f) {
    add(narrowing->widest, llama_sampler_init_top_n_sigma(params.top_n_sigma));
  }
  if (params.top_k > 0) add(narrowing->widest, llama_sampler_init_top_k(params.top_k));
  if (params.typical_p < 1.0f) {
    add(narrowing->typical, llama_sampler_init_typical(params.typical_p, 1));
  }
  if (params.top_p < 1.0f) add(narrowing->rest, llama_sampler_init_top_p(params.top_p, 1));
  if (params.min_p > 0.0f) add(narrowing->rest, llama_sampler_init_min_p(params.min_p, 1));
  return narrowing;
}

void DropBelow(float least, Candidates& candidates) {
  std::erase_if(candidates, [least](const auto& c) { return !(c.logit >= least); });
}

// Candidates that became impossible are gone afterwards.
void ApplyChain(const Chain& chain, Candidates& candidates) {
  if (candidates.empty() || llama_sampler_chain_n(chain.get()) == 0) return;
  llama_token_data_array array = {candidates.data(), candidates.size(), -1, false};
  llama_sampler_apply(chain.get(), &array);
  VC_CHECK(array.data == candidates.data(), "a filter moved its candidates");
  candidates.resize(array.size);
  DropBelow(std::numeric_limits<float>::lowest(), candidates);
}

void ApplyNarrowing(const Narrowing& narrowing, Candidates& candidates) {
  ApplyChain(narrowing.widest, candidates);
  if (llama_sampler_chain_n(narrowing.typical.get()) > 0 && !candidates.empty()) {
    const auto likeliest = std::ranges::max_element(candidates, {}, &llama_token_data::logit);
    DropBelow(likeliest->logit - kTypicalReach, candidates);
    ApplyChain(narrowing.typical, candidates);
  }
  ApplyChain(narrowing.rest, candidates);
}

// By logit, lowest id first among equals.
bool IsLikelier(const llama_token_data& a, const llama_token_data& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// The k likeliest that the grammar allows. It is asked in the order of likelihood, because asking
// about a whole vocabulary takes as long as a small model's pass.
void KeepLikeliestAllowed(Grammar& grammar, size_t k, Candidates& candidates) {
  size_t n_kept = 0;
  size_t n_ask = kFirstAsked;
  for (size_t begin = 0; begin < candidates.size() && n_kept < k; n_ask *= 4) {
    const size_t end = std::min(candidates.size(), begin + n_ask);
    const auto at = [&](size_t i) { return candidates.begin() + static_cast<ptrdiff_t>(i); };
    std::partial_sort(at(begin), at(end), candidates.end(), IsLikelier);
    grammar.Forbid(std::span(candidates).subspan(begin, end - begin));
    for (size_t i = begin; i < end && n_kept < k; ++i) {
      if (candidates[i].logit != -INFINITY) candidates[n_kept++] = candidates[i];
    }
    begin = end;
  }
  candidates.resize(std::min(n_kept, k));
}

// How many of the newest tokens a penalty looks at. libllama reserves memory for all of them at
// once, and a log may ask for any number: no text is longer than the context.
int WindowOf(int last_n, int n_context) {
  return last_n == -1 ? n_context : std::min(last_n, n_context);
}

struct Parts {
  int n_vocab = 0;
  size_t n_allowed = 0;  // how many of those that the grammar allows matter; 0: all
  Chain adjusting;
  std::optional<Grammar> grammar{};
  std::shared_ptr<const Narrowing> narrowing;
};

class LlamaFilters final : public Filters {
 public:
  explicit LlamaFilters(Parts parts) : parts_(std::move(parts)) {}

  std::unique_ptr<Filters> Clone() const override {
    std::optional<Grammar> grammar;
    if (parts_.grammar) grammar = parts_.grammar->Clone();
    return std::make_unique<LlamaFilters>(Parts{.n_vocab = parts_.n_vocab,
                                                .n_allowed = parts_.n_allowed,
                                                .adjusting = CloneChain(parts_.adjusting),
                                                .grammar = std::move(grammar),
                                                .narrowing = parts_.narrowing});
  }

  void Apply(std::span<const float> logits, std::vector<Candidate>& out) override {
    VC_CHECK(static_cast<int>(logits.size()) == parts_.n_vocab, "{} logits, {} tokens",
             logits.size(), parts_.n_vocab);
    candidates_.clear();
    for (int id = 0; id < parts_.n_vocab; ++id)
      candidates_.push_back({id, logits[static_cast<size_t>(id)], 0.0f});
    ApplyChain(parts_.adjusting, candidates_);
    // Absurd penalties overflow; the filters' softmax needs finite numbers.
    for (llama_token_data& c : candidates_) {
      c.logit = std::min(c.logit, std::numeric_limits<float>::max());
    }
    ApplyGrammar();
    ApplyNarrowing(*parts_.narrowing, candidates_);
    out.clear();
    for (const llama_token_data& c : candidates_) out.push_back({TokenId{c.id}, c.logit});
  }

  void AcceptPrompt(TokenId token) override {
    llama_sampler_accept(parts_.adjusting.get(), token.value);
  }
  void Accept(TokenId token) override {
    AcceptPrompt(token);
    if (parts_.grammar) parts_.grammar->Accept(token);
  }
  bool IsPassThrough() const override {
    return llama_sampler_chain_n(parts_.adjusting.get()) == 0 && !parts_.grammar &&
           parts_.narrowing->IsEmpty();
  }

 private:
  void ApplyGrammar() {
    if (!parts_.grammar) return;
    if (parts_.n_allowed > 0) {
      return KeepLikeliestAllowed(*parts_.grammar, parts_.n_allowed, candidates_);
    }
    parts_.grammar->Forbid(candidates_);
    DropBelow(std::numeric_limits<float>::lowest(), candidates_);
  }

  Parts parts_;
  Candidates candidates_;  // reused
};

}  // namespace

Result<std::unique_ptr<Filters>> Filters::Make(const FilterParams& params,
                                               const Tokenizer& tokenizer, int n_context) {
  FilterParams resolved = params;
  resolved.penalty_last_n = WindowOf(params.penalty_last_n, n_context);
  resolved.dry_last_n = WindowOf(params.dry_last_n, n_context);
  Parts parts{.n_vocab = tokenizer.VocabSize(),
              .adjusting = MakeAdjusting(resolved, tokenizer),
              .narrowing = MakeNarrowing(resolved)};
  if (!params.grammar.empty()) {
    Result<Grammar> grammar = Grammar::Parse(params.grammar, tokenizer);
    VC_RETURN_IF_ERROR(grammar);
    parts.grammar = *std::move(grammar);
    // Top-n-sigma comes before top-k, and looks at all of them.
    if (params.top_n_sigma <= 0.0f) parts.n_allowed = static_cast<size_t>(params.top_k);
  }
  return std::make_unique<LlamaFilters>(std::move(parts));
}

}  // namespace vericache::model
