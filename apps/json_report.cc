#include "apps/json_report.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/output_file.h"
#include "apps/request_names.h"
#include "apps/sampling_json.h"
#include "kernels/numerics.h"

namespace vericache::apps {
namespace {

using Json = nlohmann::ordered_json;

Json TokenIds(const std::vector<TokenId>& tokens) {
  Json ids = Json::array();
  for (const TokenId token : tokens) ids.push_back(token.value);
  return ids;
}

Json LogprobsArray(const std::vector<decode::TokenLogprobs>& logprobs) {
  const auto entry = [](const decode::TokenLogprob& one) {
    return Json{{"id", one.id.value}, {"logprob", one.logprob}};
  };
  Json rows = Json::array();
  for (const decode::TokenLogprobs& row : logprobs) {
    Json object = entry(row.token);
    object["top"] = Json::array();
    for (const decode::TokenLogprob& one : row.top) object["top"].push_back(entry(one));
    rows.push_back(std::move(object));
  }
  return rows;
}

// Arguments are an object where the model wrote one.
Json ToolCalls(const std::vector<model::ToolCall>& calls) {
  Json array = Json::array();
  for (const model::ToolCall& call : calls) {
    const Json arguments = Json::parse(call.arguments, nullptr, /*allow_exceptions=*/false);
    array.push_back({{"name", call.name},
                     {"arguments", arguments.is_discarded() ? Json(call.arguments) : arguments}});
  }
  return array;
}

Json CompareObject(const Comparison& comparison) {
  const auto difference = Comparison::FirstDifference(comparison.verified, comparison.full);
  const auto lossy_difference = Comparison::FirstDifference(comparison.lossy, comparison.full);
  const auto n_full = static_cast<int>(comparison.full.tokens.size());
  return {{"identical", comparison.IsIdentical()},
          {"first_difference", difference ? Json(*difference) : Json(nullptr)},
          {"full_tokens_per_s", comparison.full.TokensPerSecond()},
          {"speedup", comparison.Speedup()},
          {"lossy_identical_prefix", lossy_difference.value_or(n_full)},
          {"lossy_tokens_per_s", comparison.lossy.TokensPerSecond()}};
}

}  // namespace

std::string DumpJson(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string JsonReport(const RunReport& report) {
  const decode::Request& request = report.request;
  const Generation& generation = report.generation;
  const decode::Stats& stats = generation.stats;
  Json object = {{"model", report.facts.model},
                 {"mode", ModeName(request.mode)},
                 {"compressor", report.facts.compressor},
                 {"drafter", DrafterName(request.drafter)},
                 {"draft_len", request.draft_len ? Json(*request.draft_len) : Json("auto")},
                 {"isa", report.facts.isa},
                 {"threads", report.facts.n_threads},
                 {"numerics", kernels::kNumericsRevision},
                 {"sampling", SamplingToJson(request.sampling)},
                 {"prompt_tokens", stats.prompt_tokens},
                 {"reused_tokens", stats.reused_tokens},
                 {"tokens", TokenIds(generation.tokens)},
                 {"text", generation.text},
                 {"finish_reason", FinishReasonName(generation.reason)},
                 {"prefill_s", stats.prefill_s},
                 {"decode_s", stats.decode_s},
                 {"compress_s", stats.compress_s},
                 {"tokens_per_s", generation.TokensPerSecond()},
                 {"rounds", stats.rounds},
                 {"drafted", stats.drafted},
                 {"accepted", stats.accepted},
                 {"mean_accepted", generation.MeanAccepted()},
                 {"looked_up", stats.looked_up},
                 {"looked_up_kept", stats.looked_up_kept},
                 {"kv_full_bytes", stats.kv_full_bytes},
                 {"kv_draft_bytes", stats.kv_draft_bytes}};
  if (request.n_logprobs >= 0) object["logprobs"] = LogprobsArray(generation.logprobs);
  if (report.parsed != nullptr) {
    object["content"] = report.parsed->content;
    object["tool_calls"] = ToolCalls(report.parsed->tool_calls);
  }
  if (report.comparison != nullptr) object["compare"] = CompareObject(*report.comparison);
  return DumpJson(object) + "\n";
}

Status CheckWritable(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "ab"),
                                                             &std::fclose);
  if (file == nullptr) {
    return MakeError(ErrorCode::kNotFound, "cannot write '{}': {}", path, std::strerror(errno));
  }
  return {};
}

Status WriteReport(const std::string& path_or_dash, const std::string& json) {
  if (path_or_dash == "-") return Print(stdout, json);
  std::FILE* file = std::fopen(path_or_dash.c_str(), "wb");
  bool is_good = file != nullptr && std::fwrite(json.data(), 1, json.size(), file) == json.size();
  if (file != nullptr) is_good = std::fclose(file) == 0 && is_good;
  if (is_good) return {};
  return tl::unexpected(WriteError("'" + path_or_dash + "'", errno));
}

}  // namespace vericache::apps
