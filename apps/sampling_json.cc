#include "apps/sampling_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace vericache::apps {
namespace {

using Json = nlohmann::ordered_json;

// 0.8f as 0.8: the shortest number that is this float, as the user wrote it.
double Shortest(float number) { return std::stod(fmt::format("{}", number)); }

// [token, bias]; JSON has no infinity: null forbids the token.
Json BiasesToJson(const std::vector<std::pair<TokenId, float>>& biases) {
  Json array = Json::array();
  for (const auto& [token, bias] : biases) {
    array.push_back({token.value, std::isfinite(bias) ? Json(Shortest(bias)) : Json(nullptr)});
  }
  return array;
}

std::vector<std::pair<TokenId, float>> BiasesFromJson(const Json& array) {
  std::vector<std::pair<TokenId, float>> biases;
  for (const Json& entry : array) {
    const Json& bias = entry.at(1);
    biases.emplace_back(TokenId{entry.at(0).get<int32_t>()},
                        bias.is_null() ? -INFINITY : bias.get<float>());
  }
  return biases;
}

}  // namespace

Json SamplingToJson(const decode::SamplingParams& sampling) {
  const model::FilterParams& filters = sampling.filters;
  return {{"seed", sampling.seed},
          {"choice", sampling.choice},
          {"temperature", Shortest(sampling.temperature)},
          {"top_k", filters.top_k},
          {"top_p", Shortest(filters.top_p)},
          {"min_p", Shortest(filters.min_p)},
          {"typical_p", Shortest(filters.typical_p)},
          {"top_n_sigma", Shortest(filters.top_n_sigma)},
          {"xtc_probability", Shortest(sampling.xtc.probability)},
          {"xtc_threshold", Shortest(sampling.xtc.threshold)},
          {"repeat_penalty", Shortest(filters.repeat_penalty)},
          {"repeat_last_n", filters.penalty_last_n},
          {"presence_penalty", Shortest(filters.presence_penalty)},
          {"frequency_penalty", Shortest(filters.frequency_penalty)},
          {"dry_multiplier", Shortest(filters.dry_multiplier)},
          {"dry_base", Shortest(filters.dry_base)},
          {"dry_allowed_length", filters.dry_allowed_length},
          {"dry_penalty_last_n", filters.dry_last_n},
          {"dry_sequence_breakers", filters.dry_breakers},
          {"logit_bias", BiasesToJson(filters.logit_bias)},
          {"grammar", filters.grammar}};
}

decode::SamplingParams SamplingFromJson(const Json& object) {
  const auto number = [&object](const char* key) { return object.at(key).get<float>(); };
  const auto count = [&object](const char* key) { return object.at(key).get<int>(); };
  return {.temperature = number("temperature"),
          .seed = object.at("seed").get<uint64_t>(),
          .choice = object.at("choice").get<uint32_t>(),
          .filters = {.top_k = count("top_k"),
                      .top_p = number("top_p"),
                      .min_p = number("min_p"),
                      .typical_p = number("typical_p"),
                      .top_n_sigma = number("top_n_sigma"),
                      .repeat_penalty = number("repeat_penalty"),
                      .presence_penalty = number("presence_penalty"),
                      .frequency_penalty = number("frequency_penalty"),
                      .penalty_last_n = count("repeat_last_n"),
                      .dry_multiplier = number("dry_multiplier"),
                      .dry_base = number("dry_base"),
                      .dry_allowed_length = count("dry_allowed_length"),
                      .dry_last_n = count("dry_penalty_last_n"),
                      .dry_breakers =
                          object.at("dry_sequence_breakers").get<std::vector<std::string>>(),
                      .logit_bias = BiasesFromJson(object.at("logit_bias")),
                      .grammar = object.at("grammar").get<std::string>()},
          .xtc = {.probability = number("xtc_probability"), .threshold = number("xtc_threshold")}};
}

}  // namespace vericache::apps
