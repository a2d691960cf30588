#include "decode/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "decode/noise.h"
#include "decode/xtc.h"

namespace vericache::decode {
namespace {

// The running best of argmax(score), lowest id among equals, whatever the order of offers.
template <typename Score>
class Best {
 public:
  Best(TokenId id, Score score) : id_(id), score_(score) {}
  void Offer(TokenId id, Score score) {
    if (score > score_ || (score == score_ && id < id_)) {
      id_ = id;
      score_ = score;
    }
  }
  TokenId Id() const { return id_; }
  Score GetScore() const { return score_; }

 private:
  TokenId id_;
  Score score_;
};

// Candidate i of a span of logits, or of what filters left.
struct AllTokens {
  std::span<const float> logits;
  size_t Count() const { return logits.size(); }
  TokenId Id(size_t i) const { return TokenId{static_cast<int32_t>(i)}; }
  float Logit(size_t i) const { return logits[i]; }
};
struct SomeTokens {
  std::span<const model::Candidate> candidates;
  size_t Count() const { return candidates.size(); }
  TokenId Id(size_t i) const { return candidates[i].id; }
  float Logit(size_t i) const { return candidates[i].logit; }
};

template <typename Tokens>
TokenId Greedy(const Tokens& tokens) {
  Best<float> best(tokens.Id(0), tokens.Logit(0));
  for (size_t i = 1; i < tokens.Count(); ++i) best.Offer(tokens.Id(i), tokens.Logit(i));
  return best.Id();
}

// argmax(logit / T + g). The likeliest candidate is scored first; the others then have to beat a
// score that only few draws of g can reach, and the rest are skipped before their logarithms. The
// slack covers every rounding of the two sides, so the choice equals that of scoring all.
template <typename Tokens>
TokenId Draw(const Tokens& tokens, double temperature, const PositionNoise& noise) {
  size_t top = 0;
  for (size_t i = 1; i < tokens.Count(); ++i) {
    if (tokens.Logit(i) > tokens.Logit(top)) top = i;
  }
  const auto scaled = [&](size_t i) { return static_cast<double>(tokens.Logit(i)) / temperature; };
  Best<double> best(tokens.Id(top), scaled(top) + GumbelFromBits(noise.Bits(tokens.Id(top))));
  for (size_t i = 0; i < tokens.Count(); ++i) {
    const double x = scaled(i);
    const double slack = 1e-9 + 0x1p-50 * (std::abs(x) + std::abs(best.GetScore()));
    const double needed = best.GetScore() - x - slack;
    if (needed > kMaxGumbel) continue;
    const uint64_t bits = noise.Bits(tokens.Id(i));
    if (GumbelIsBelow(bits, needed)) continue;
    best.Offer(tokens.Id(i), x + GumbelFromBits(bits));
  }
  return best.Id();
}

template <typename Tokens>
TokenId Choose(const Tokens& tokens, const SamplingParams& params, Position position) {
  VC_CHECK(tokens.Count() > 0, "no candidates at position {}", position.value);
  if (params.temperature == 0.0f) return Greedy(tokens);
  return Draw(tokens, static_cast<double>(params.temperature),
              PositionNoise(params.seed, params.choice, position));
}

}  // namespace

Result<Sampler> Sampler::Make(const SamplingParams& params, const model::Tokenizer& tokenizer,
                              int n_context) {
  auto filters = model::Filters::Make(params.filters, tokenizer, n_context);
  VC_RETURN_IF_ERROR(filters);
  return Sampler(params, *std::move(filters));
}

Sampler Sampler::Clone() const { return Sampler(params_, filters_->Clone()); }

std::optional<TokenId> Sampler::Sample(std::span<const float> logits, Position position) {
  const bool has_xtc = params_.xtc.probability > 0.0f;
  if (filters_->IsPassThrough() && !has_xtc) return Choose(AllTokens{logits}, params_, position);
  filters_->Apply(logits, candidates_);
  if (candidates_.empty()) return std::nullopt;
  if (has_xtc) {
    const PositionNoise noise(params_.seed, params_.choice, position);
    ApplyXtc(params_.xtc, noise.SharedBits(), candidates_);
  }
  return Choose(SomeTokens{candidates_}, params_, position);
}

void Sampler::AcceptPrompt(TokenId token) { filters_->AcceptPrompt(token); }
void Sampler::Accept(TokenId token) { filters_->Accept(token); }

TokenId ArgMax(std::span<const float> logits) {
  VC_CHECK(!logits.empty());
  return Greedy(AllTokens{logits});
}

TokenLogprobs ComputeLogprobs(std::span<const float> logits, TokenId token, int n) {
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  const double log_total = top + std::log(sum);
  const auto logprob = [&](int32_t id) {
    return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(id)]) - log_total);
  };

  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto n_top = std::min(static_cast<ptrdiff_t>(n), static_cast<ptrdiff_t>(ids.size()));
  std::partial_sort(ids.begin(), ids.begin() + n_top, ids.end(), [&](int32_t a, int32_t b) {
    const float la = logits[static_cast<size_t>(a)];
    const float lb = logits[static_cast<size_t>(b)];
    return la > lb || (la == lb && a < b);
  });

  TokenLogprobs result{.token = {token, logprob(token.value)}, .top = {}};
  for (ptrdiff_t i = 0; i < n_top; ++i) {
    const int32_t id = ids[static_cast<size_t>(i)];
    result.top.push_back({TokenId{id}, logprob(id)});
  }
  return result;
}

}  // namespace vericache::decode
