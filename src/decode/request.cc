#include "decode/request.h"

#include <cmath>

#include "decode/utf8.h"

namespace vericache::decode {
namespace {

Status ValidateTokens(std::string_view name, const std::vector<TokenId>& tokens, int n_vocab) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].value >= 0 && tokens[i].value < n_vocab) continue;
    return MakeError(ErrorCode::kInvalidArgument, "{} token {} is {}; token ids lie in [0, {})",
                     name, i, tokens[i].value, n_vocab);
  }
  return {};
}

Status ValidatePrompt(const Request& request, const RequestLimits& limits) {
  if (request.prompt.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "the prompt is empty");
  }
  const size_t n_prompt = request.prompt.size();
  if (n_prompt >= static_cast<size_t>(limits.n_context)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "the prompt has {} tokens; the context holds {}, of which one at least must "
                     "be left for the answer",
                     n_prompt, limits.n_context);
  }
  VC_RETURN_IF_ERROR(ValidateTokens("prompt", request.prompt, limits.n_vocab));
  return ValidateTokens("given", request.given, limits.n_vocab);
}

// NaN fails every comparison, hence the form !(in range).
Status CheckNumber(std::string_view name, float value, bool is_right, std::string_view range) {
  if (is_right && std::isfinite(value)) return {};
  return MakeError(ErrorCode::kInvalidArgument, "{} is {}; it must be {}", name, value, range);
}

Status CheckCount(std::string_view name, int value, int least, std::string_view range) {
  if (value >= least) return {};
  return MakeError(ErrorCode::kInvalidArgument, "{} is {}; it must be {}", name, value, range);
}

Status ValidateNarrowing(const model::FilterParams& filters) {
  const auto is_share = [](float value) { return value > 0.0f && value <= 1.0f; };
  VC_RETURN_IF_ERROR(CheckCount("top_k", filters.top_k, 0, "0 (off) or positive"));
  VC_RETURN_IF_ERROR(CheckNumber("top_p", filters.top_p, is_share(filters.top_p), "in (0, 1]"));
  VC_RETURN_IF_ERROR(CheckNumber("min_p", filters.min_p,
                                 filters.min_p >= 0.0f && filters.min_p <= 1.0f, "in [0, 1]"));
  VC_RETURN_IF_ERROR(
      CheckNumber("typical_p", filters.typical_p, is_share(filters.typical_p), "in (0, 1]"));
  return CheckNumber("top_n_sigma", filters.top_n_sigma, filters.top_n_sigma >= 0.0f,
                     "0 (off) or positive");
}

Status ValidatePenalties(const model::FilterParams& filters) {
  VC_RETURN_IF_ERROR(CheckNumber("repeat_penalty", filters.repeat_penalty,
                                 filters.repeat_penalty > 0.0f, "positive; 1 is off"));
  VC_RETURN_IF_ERROR(
      CheckNumber("presence_penalty", filters.presence_penalty, true, "a finite number"));
  VC_RETURN_IF_ERROR(
      CheckNumber("frequency_penalty", filters.frequency_penalty, true, "a finite number"));
  return CheckCount("penalty_last_n", filters.penalty_last_n, -1,
                    "-1 (the context), 0 (off) or positive");
}

Status ValidateDry(const model::FilterParams& filters) {
  VC_RETURN_IF_ERROR(CheckNumber("dry_multiplier", filters.dry_multiplier,
                                 filters.dry_multiplier >= 0.0f, "0 (off) or positive"));
  VC_RETURN_IF_ERROR(
      CheckNumber("dry_base", filters.dry_base, filters.dry_base >= 1.0f, "1 or more"));
  VC_RETURN_IF_ERROR(CheckCount("dry_allowed_length", filters.dry_allowed_length, 1, "positive"));
  VC_RETURN_IF_ERROR(
      CheckCount("dry_last_n", filters.dry_last_n, -1, "-1 (the context), 0 (off) or positive"));
  for (const std::string& breaker : filters.dry_breakers) {
    if (breaker.empty() || breaker.size() > kMaxDryBreakerBytes) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "a DRY sequence breaker has {} bytes; it must have 1 to {}", breaker.size(),
                       kMaxDryBreakerBytes);
    }
    if (!IsUtf8(breaker)) {
      return MakeError(ErrorCode::kInvalidArgument, "a DRY sequence breaker is not valid UTF-8");
    }
  }
  return {};
}

Status ValidateBias(const model::FilterParams& filters, int n_vocab) {
  for (const auto& [id, bias] : filters.logit_bias) {
    if (id.value < 0 || id.value >= n_vocab) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "logit_bias names token {}; token ids lie in [0, {})", id.value, n_vocab);
    }
    if (std::isnan(bias) || bias == INFINITY) {
      return MakeError(ErrorCode::kInvalidArgument, "logit_bias is {}; it must be a number or -inf",
                       bias);
    }
  }
  return {};
}

Status ValidateSampling(const SamplingParams& sampling, int n_vocab) {
  VC_RETURN_IF_ERROR(CheckNumber("temperature", sampling.temperature, sampling.temperature >= 0.0f,
                                 "0 (greedy) or positive"));
  VC_RETURN_IF_ERROR(ValidateNarrowing(sampling.filters));
  VC_RETURN_IF_ERROR(ValidatePenalties(sampling.filters));
  VC_RETURN_IF_ERROR(ValidateDry(sampling.filters));
  VC_RETURN_IF_ERROR(ValidateBias(sampling.filters, n_vocab));
  if (!IsUtf8(sampling.filters.grammar)) {
    return MakeError(ErrorCode::kInvalidArgument, "the grammar is not valid UTF-8");
  }
  const XtcParams& xtc = sampling.xtc;
  VC_RETURN_IF_ERROR(CheckNumber("xtc.probability", xtc.probability,
                                 xtc.probability >= 0.0f && xtc.probability <= 1.0f, "in [0, 1]"));
  return CheckNumber("xtc.threshold", xtc.threshold, xtc.threshold >= 0.0f && xtc.threshold <= 1.0f,
                     "in [0, 1]");
}

Status ValidateStop(const std::vector<std::string>& stop) {
  if (stop.size() > static_cast<size_t>(kMaxStopStrings)) {
    return MakeError(ErrorCode::kInvalidArgument, "{} stop strings given; at most {} are allowed",
                     stop.size(), kMaxStopStrings);
  }
  for (const std::string& text : stop) {
    if (text.empty()) return MakeError(ErrorCode::kInvalidArgument, "a stop string is empty");
    if (!IsUtf8(text)) {
      return MakeError(ErrorCode::kInvalidArgument, "a stop string is not valid UTF-8");
    }
  }
  return {};
}

}  // namespace

Status ValidateRequest(const Request& request, const RequestLimits& limits) {
  VC_RETURN_IF_ERROR(ValidatePrompt(request, limits));
  VC_RETURN_IF_ERROR(ValidateSampling(request.sampling, limits.n_vocab));
  VC_RETURN_IF_ERROR(ValidateStop(request.stop));
  if (request.max_tokens < -1) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        "max_tokens is {}; it must be -1 (until the end), 0 (prefill only) or positive",
        request.max_tokens);
  }
  if (request.draft_len && (*request.draft_len < 0 || *request.draft_len > kMaxDraftLen)) {
    return MakeError(ErrorCode::kInvalidArgument, "draft_len is {}; it must be in [0, {}]",
                     *request.draft_len, kMaxDraftLen);
  }
  if (request.n_logprobs < -1 || request.n_logprobs > kMaxLogprobs) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "n_logprobs is {}; it must be -1 (none) or in [0, {}]", request.n_logprobs,
                     kMaxLogprobs);
  }
  return {};
}

}  // namespace vericache::decode
