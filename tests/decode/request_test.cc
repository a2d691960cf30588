// Goal: every value out of range is refused, by name and with the range; every edge is allowed.
// Method: one request per field.

#include "decode/request.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace vericache::decode {
namespace {

constexpr RequestLimits kLimits{.n_vocab = 100, .n_context = 16};

Request Valid() {
  Request request;
  request.prompt = {TokenId{0}, TokenId{99}};
  return request;
}

void ExpectRefused(std::string_view name, const std::function<void(Request&)>& spoil) {
  Request request = Valid();
  spoil(request);
  const Status status = ValidateRequest(request, kLimits);
  ASSERT_FALSE(status.has_value()) << name;
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(status.error().message.find(name), std::string::npos) << status.error().message;
}

TEST(Request, DefaultsAreValid) { EXPECT_TRUE(ValidateRequest(Valid(), kLimits).has_value()); }

TEST(Request, RefusesPromptsThatDoNotFit) {
  ExpectRefused("prompt is empty", [](Request& r) { r.prompt.clear(); });
  ExpectRefused("prompt token 0 is -1", [](Request& r) { r.prompt[0] = TokenId{-1}; });
  ExpectRefused("prompt token 1 is 100", [](Request& r) { r.prompt[1] = TokenId{100}; });
  ExpectRefused("16 tokens; the context holds 16",
                [](Request& r) { r.prompt.assign(16, TokenId{1}); });
  ExpectRefused("given token 2 is 100", [](Request& r) {
    r.given = {TokenId{0}, TokenId{99}, TokenId{100}};
  });
  Request longest = Valid();
  longest.prompt.assign(15, TokenId{1});
  EXPECT_TRUE(ValidateRequest(longest, kLimits).has_value());
}

TEST(Request, RefusesNumbersOutOfRange) {
  ExpectRefused("temperature", [](Request& r) { r.sampling.temperature = -0.1f; });
  ExpectRefused("temperature", [](Request& r) { r.sampling.temperature = NAN; });
  ExpectRefused("temperature", [](Request& r) { r.sampling.temperature = INFINITY; });
  ExpectRefused("top_k", [](Request& r) { r.sampling.filters.top_k = -1; });
  ExpectRefused("top_p", [](Request& r) { r.sampling.filters.top_p = 0.0f; });
  ExpectRefused("top_p", [](Request& r) { r.sampling.filters.top_p = 1.01f; });
  ExpectRefused("top_p", [](Request& r) { r.sampling.filters.top_p = NAN; });
  ExpectRefused("min_p", [](Request& r) { r.sampling.filters.min_p = -0.1f; });
  ExpectRefused("min_p", [](Request& r) { r.sampling.filters.min_p = 1.1f; });
  ExpectRefused("repeat_penalty", [](Request& r) { r.sampling.filters.repeat_penalty = 0.0f; });
  ExpectRefused("presence_penalty",
                [](Request& r) { r.sampling.filters.presence_penalty = INFINITY; });
  ExpectRefused("frequency_penalty",
                [](Request& r) { r.sampling.filters.frequency_penalty = NAN; });
  ExpectRefused("penalty_last_n", [](Request& r) { r.sampling.filters.penalty_last_n = -2; });
  ExpectRefused("typical_p", [](Request& r) { r.sampling.filters.typical_p = 0.0f; });
  ExpectRefused("typical_p", [](Request& r) { r.sampling.filters.typical_p = NAN; });
  ExpectRefused("top_n_sigma", [](Request& r) { r.sampling.filters.top_n_sigma = -1.0f; });
  ExpectRefused("dry_multiplier", [](Request& r) { r.sampling.filters.dry_multiplier = -1.0f; });
  ExpectRefused("dry_base", [](Request& r) { r.sampling.filters.dry_base = 0.5f; });
  ExpectRefused("dry_base", [](Request& r) { r.sampling.filters.dry_base = INFINITY; });
  ExpectRefused("dry_allowed_length",
                [](Request& r) { r.sampling.filters.dry_allowed_length = 0; });
  ExpectRefused("dry_last_n", [](Request& r) { r.sampling.filters.dry_last_n = -2; });
  ExpectRefused("breaker has 0", [](Request& r) { r.sampling.filters.dry_breakers = {""}; });
  ExpectRefused("breaker has 41",
                [](Request& r) { r.sampling.filters.dry_breakers = {std::string(41, 'x')}; });
  ExpectRefused("xtc.probability", [](Request& r) { r.sampling.xtc.probability = 1.1f; });
  ExpectRefused("xtc.threshold", [](Request& r) { r.sampling.xtc.threshold = NAN; });
  ExpectRefused("logit_bias", [](Request& r) {
    r.sampling.filters.logit_bias = {{TokenId{1}, INFINITY}};
  });
  ExpectRefused("logit_bias", [](Request& r) {
    r.sampling.filters.logit_bias = {{TokenId{100}, 1.0f}};
  });
  ExpectRefused("logit_bias", [](Request& r) {
    r.sampling.filters.logit_bias = {{TokenId{1}, NAN}};
  });
  ExpectRefused("max_tokens", [](Request& r) { r.max_tokens = -5; });
  ExpectRefused("draft_len", [](Request& r) { r.draft_len = -1; });
  ExpectRefused("draft_len", [](Request& r) { r.draft_len = kMaxDraftLen + 1; });
  ExpectRefused("n_logprobs", [](Request& r) { r.n_logprobs = kMaxLogprobs + 1; });
  ExpectRefused("n_logprobs", [](Request& r) { r.n_logprobs = -2; });
}

TEST(Request, RefusesStopStringsThatCannotMatch) {
  ExpectRefused("stop string is empty", [](Request& r) { r.stop = {"a", ""}; });
  ExpectRefused("not valid UTF-8", [](Request& r) { r.stop = {"\xE2\x80"}; });
  ExpectRefused("stop strings", [](Request& r) { r.stop.assign(kMaxStopStrings + 1, "a"); });
}

TEST(Request, RefusesTextsOfSamplersThatAreNoUtf8) {
  ExpectRefused("grammar is not valid UTF-8",
                [](Request& r) { r.sampling.filters.grammar = "root ::= \"\xFF\""; });
  ExpectRefused("breaker is not valid UTF-8", [](Request& r) {
    r.sampling.filters.dry_breakers = {"\n", "\xC3"};
  });
}

TEST(Request, AllowsEveryEdge) {
  Request request = Valid();
  request.sampling.temperature = 1e-9f;
  request.sampling.filters = {.top_k = 1,
                              .top_p = 1.0f,
                              .min_p = 1.0f,
                              .penalty_last_n = -1,
                              .logit_bias = {{TokenId{99}, -INFINITY}}};
  request.max_tokens = 0;
  request.draft_len = kMaxDraftLen;
  request.n_logprobs = kMaxLogprobs;
  request.stop = {"한국어"};
  EXPECT_TRUE(ValidateRequest(request, kLimits).has_value());
}

}  // namespace
}  // namespace vericache::decode
