#include "model/filters.h"

#include <llama.h>

#include <utility>

#include "base/check.h"

namespace vericache::model {
namespace {

struct SamplerDeleter {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using Sampler = std::unique_ptr<llama_sampler, SamplerDeleter>;

bool HasPenalties(const FilterParams& params) {
  return params.penalty_last_n > 0 &&
         (params.repeat_penalty != 1.0f || params.presence_penalty != 0.0f ||
          params.frequency_penalty != 0.0f);
}

// libllama's own order: bias, penalties, top-k, top-p, min-p.
Sampler MakeChain(const FilterParams& params, int n_vocab) {
  Sampler chain(llama_sampler_chain_init({.no_perf = true}));
  const auto add = [&](llama_sampler* sampler) { llama_sampler_chain_add(chain.get(), sampler); };
  if (!params.logit_bias.empty()) {
    std::vector<llama_logit_bias> biases;
    for (const auto& [token, bias] : params.logit_bias) biases.push_back({token.value, bias});
    add(llama_sampler_init_logit_bias(n_vocab, static_cast<int32_t>(biases.size()), biases.data()));
  }
  if (HasPenalties(params)) {
    add(llama_sampler_init_penalties(n_vocab, params.penalty_last_n, params.repeat_penalty,
                                     params.frequency_penalty, params.presence_penalty));
  }
  if (params.top_k > 0) add(llama_sampler_init_top_k(params.top_k));
  if (params.top_p < 1.0f) add(llama_sampler_init_top_p(params.top_p, 1));
  if (params.min_p > 0.0f) add(llama_sampler_init_min_p(params.min_p, 1));
  return chain;
}

class LlamaFilters final : public Filters {
 public:
  LlamaFilters(Sampler chain, int n_vocab) : chain_(std::move(chain)), n_vocab_(n_vocab) {}

  std::unique_ptr<Filters> Clone() const override {
    return std::make_unique<LlamaFilters>(Sampler(llama_sampler_clone(chain_.get())), n_vocab_);
  }

  void Apply(std::span<const float> logits, std::vector<Candidate>& out) override {
    VC_CHECK(static_cast<int>(logits.size()) == n_vocab_, "{} logits, {} tokens", logits.size(),
             n_vocab_);
    candidates_.clear();
    for (int id = 0; id < n_vocab_; ++id)
      candidates_.push_back({id, logits[static_cast<size_t>(id)], 0.0f});
    llama_token_data_array array = {candidates_.data(), candidates_.size(), -1, false};
    llama_sampler_apply(chain_.get(), &array);
    VC_CHECK(array.size > 0);
    out.clear();
    for (size_t i = 0; i < array.size; ++i)
      out.push_back({TokenId{array.data[i].id}, array.data[i].logit});
  }

  void Accept(TokenId token) override { llama_sampler_accept(chain_.get(), token.value); }
  bool IsPassThrough() const override { return llama_sampler_chain_n(chain_.get()) == 0; }

 private:
  Sampler chain_;
  int n_vocab_;
  std::vector<llama_token_data> candidates_;
};

}  // namespace

std::unique_ptr<Filters> Filters::Make(const FilterParams& params, int n_vocab) {
  return std::make_unique<LlamaFilters>(MakeChain(params, n_vocab), n_vocab);
}

}  // namespace vericache::model
