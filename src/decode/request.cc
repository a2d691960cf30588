#include "decode/request.h"

#include <cmath>

#include "decode/utf8.h"

namespace vericache::decode {
namespace {

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
  for (size_t i = 0; i < n_prompt; ++i) {
    const int32_t id = request.prompt[i].value;
    if (id < 0 || id >= limits.n_vocab) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "prompt token {} is {}; token ids lie in [0, {})", i, id, limits.n_vocab);
    }
  }
  return {};
}

// NaN fails every comparison, hence the form !(in range).
Status ValidateSampling(const SamplingParams& sampling, int n_vocab) {
  const model::FilterParams& filters = sampling.filters;
  const auto refuse = [](std::string_view name, float value, std::string_view range) {
    return MakeError(ErrorCode::kInvalidArgument, "{} is {}; it must be {}", name, value, range);
  };
  if (!(sampling.temperature >= 0.0f && std::isfinite(sampling.temperature))) {
    return refuse("temperature", sampling.temperature, "0 (greedy) or positive");
  }
  if (filters.top_k < 0) {
    return MakeError(ErrorCode::kInvalidArgument, "top_k is {}; it must be 0 (off) or positive",
                     filters.top_k);
  }
  if (!(filters.top_p > 0.0f && filters.top_p <= 1.0f)) {
    return refuse("top_p", filters.top_p, "in (0, 1]");
  }
  if (!(filters.min_p >= 0.0f && filters.min_p <= 1.0f)) {
    return refuse("min_p", filters.min_p, "in [0, 1]");
  }
  if (!(filters.repeat_penalty > 0.0f && std::isfinite(filters.repeat_penalty))) {
    return refuse("repeat_penalty", filters.repeat_penalty, "positive; 1 is off");
  }
  if (!std::isfinite(filters.presence_penalty)) {
    return refuse("presence_penalty", filters.presence_penalty, "a finite number");
  }
  if (!std::isfinite(filters.frequency_penalty)) {
    return refuse("frequency_penalty", filters.frequency_penalty, "a finite number");
  }
  if (filters.penalty_last_n < -1) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "penalty_last_n is {}; it must be -1 (the context), 0 (off) or positive",
                     filters.penalty_last_n);
  }
  for (const auto& [id, bias] : filters.logit_bias) {
    if (id.value < 0 || id.value >= n_vocab) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "logit_bias names token {}; token ids lie in [0, {})", id.value, n_vocab);
    }
    if (std::isnan(bias)) return refuse("logit_bias", bias, "a number");
  }
  return {};
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
