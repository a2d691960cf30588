#include "apps/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "apps/json_report.h"
#include "apps/measures.h"
#include "apps/request_names.h"
#include "apps/sampling_json.h"
#include "apps/version.h"
#include "model/json_depth.h"

namespace vericache::apps {
namespace {

using Json = nlohmann::ordered_json;
using decode::FinishReason;

constexpr int kVersion = 1;
constexpr const char* kVersionKey = "vericache_log";
constexpr const char* kChecksumKey = "checksum";

std::string Checksum(const Json& object) {
  const std::string text = DumpJson(object);
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

Json IdsToJson(const std::vector<TokenId>& tokens) {
  Json ids = Json::array();
  for (const TokenId token : tokens) ids.push_back(token.value);
  return ids;
}

// get<int32_t>() would wrap a larger number and cut a fraction.
Result<std::vector<TokenId>> IdsFromJson(const Json& ids) {
  std::vector<TokenId> tokens;
  for (const Json& id : ids) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<int32_t>::max()) {
      return MakeError(ErrorCode::kDataLoss, "{} is no token", DumpJson(id));
    }
    tokens.emplace_back(id.get<int32_t>());
  }
  return tokens;
}

Result<uint64_t> HashFromJson(const Json& hash) {
  const auto text = hash.get<std::string>();
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, 16);
  if (error == std::errc() && rest == end) return value;
  return MakeError(ErrorCode::kDataLoss, "'{}' is no logits_hash", text);
}

// An answer that ended for another reason than the log says could be judged identical: how far it
// is replayed depends on the reason.
Status CheckEnd(const RunLog& log) {
  if (log.reason == FinishReason::kNone || log.reason == FinishReason::kError) {
    return MakeError(ErrorCode::kDataLoss, "an answer that ended by '{}' is not logged",
                     FinishReasonName(log.reason));
  }
  const auto n_tokens = static_cast<int>(log.tokens.size());
  if (log.reason == FinishReason::kLength && n_tokens != log.request.max_tokens) {
    return MakeError(ErrorCode::kDataLoss, "{} tokens do not end by the limit of {}", n_tokens,
                     log.request.max_tokens);
  }
  return {};
}

// Throws nlohmann's exceptions for a missing or mistyped key.
Result<RunLog> FromJson(const Json& object) {
  RunLog log;
  log.model = object.at("model").get<std::string>();
  log.fingerprint = object.at("fingerprint").get<std::string>();
  log.numerics = object.at("numerics").get<int>();
  const auto mode = ParseMode(object.at("mode").get<std::string>());
  VC_RETURN_IF_ERROR(mode);
  log.request.mode = *mode;
  log.request.compressor = object.at("compressor").get<std::string>();
  log.request.sampling = SamplingFromJson(object.at("sampling"));
  log.request.max_tokens = object.at("max_tokens").get<int>();
  log.request.ignore_eos = object.at("ignore_eos").get<bool>();
  log.request.stop = object.at("stop").get<std::vector<std::string>>();
  auto prompt = IdsFromJson(object.at("prompt"));
  VC_RETURN_IF_ERROR(prompt);
  log.request.prompt = *std::move(prompt);
  auto answer = IdsFromJson(object.at("answer"));
  VC_RETURN_IF_ERROR(answer);
  log.tokens = *std::move(answer);
  log.text = object.at("text").get<std::string>();
  const auto reason = ParseFinishReason(object.at("finish_reason").get<std::string>());
  VC_RETURN_IF_ERROR(reason);
  log.reason = *reason;
  if (const Json& text = object.at("logits_hash"); !text.is_null()) {
    const auto hash = HashFromJson(text);
    VC_RETURN_IF_ERROR(hash);
    log.logits_hash = *hash;
  }
  VC_RETURN_IF_ERROR(CheckEnd(log));
  return log;
}

}  // namespace

std::string WriteRunLog(const RunLog& log) {
  const decode::Request& request = log.request;
  Json object = {{kVersionKey, kVersion},
                 {"written_by", VersionLine()},
                 {"model", log.model},
                 {"fingerprint", log.fingerprint},
                 {"numerics", log.numerics},
                 {"mode", ModeName(request.mode)},
                 {"compressor", request.compressor},
                 {"sampling", SamplingToJson(request.sampling)},
                 {"max_tokens", request.max_tokens},
                 {"ignore_eos", request.ignore_eos},
                 {"stop", request.stop},
                 {"prompt", IdsToJson(request.prompt)},
                 {"answer", IdsToJson(log.tokens)},
                 {"text", log.text},
                 {"finish_reason", FinishReasonName(log.reason)},
                 {"logits_hash", log.logits_hash ? Json(fmt::format("{:016x}", *log.logits_hash))
                                                 : Json(nullptr)}};
  object[kChecksumKey] = Checksum(object);
  std::string text;
  for (const auto& [key, value] : object.items()) {
    text += fmt::format("{}{}: {}", text.empty() ? "{\n" : ",\n", DumpJson(key), DumpJson(value));
  }
  return text + "\n}\n";
}

Result<RunLog> ReadRunLog(std::string_view text, std::string_view name) {
  if (const int depth = model::JsonDepth(text); depth > model::kMaxJsonDepth) {
    return MakeError(ErrorCode::kInvalidArgument, "{} is no log of an answer: it is nested {} deep",
                     name, depth);
  }
  Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded() && text.find(kVersionKey) != std::string_view::npos) {
    return MakeError(ErrorCode::kDataLoss, "{} is cut or damaged: it is no whole JSON", name);
  }
  if (!object.is_object() || !object.contains(kVersionKey)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{} is no log of an answer; vericache run --log writes one", name);
  }
  if (object[kVersionKey] != kVersion) {
    return MakeError(ErrorCode::kUnsupported, "{} is a log of version {}; this build reads {}",
                     name, DumpJson(object[kVersionKey]), kVersion);
  }
  const Json checksum = object.value(kChecksumKey, Json(nullptr));
  object.erase(kChecksumKey);
  if (checksum != Checksum(object)) {
    return MakeError(ErrorCode::kDataLoss,
                     "{} is damaged: its checksum is {}, that of its content {}", name,
                     DumpJson(checksum), Checksum(object));
  }
  try {
    auto log = FromJson(object);
    if (log) return log;
    return MakeError(ErrorCode::kDataLoss, "{} is damaged: {}", name, log.error().message);
  } catch (const std::exception& error) {  // nlohmann's, and of a hash that is no number
    return MakeError(ErrorCode::kDataLoss, "{} is damaged: {}", name, error.what());
  }
}

// An answer is replayed for as many tokens as it has: what ended it from outside (a limit, the
// context, Ctrl-C) cannot end it earlier, and what ends it from inside comes first. That a grammar
// allows no token shows when one more is asked for.
decode::Request ReplayOf(const RunLog& log) {
  decode::Request replay = log.request;
  replay.mode = decode::Mode::kVerified;
  replay.drafter = decode::DrafterKind::kGiven;
  replay.compressor = "identity";  // none is needed; the logged one may be of another build
  replay.given = log.tokens;
  replay.max_tokens =
      static_cast<int>(log.tokens.size()) + (log.reason == FinishReason::kGrammar ? 1 : 0);
  replay.hash_logits = true;
  return replay;
}

Verdict Judge(const RunLog& log, const Generation& replay) {
  Verdict verdict{.first_difference = FirstDifference(log.tokens, replay.tokens),
                  .is_same_end = true,
                  .are_logits_same = true};
  if (verdict.first_difference) return verdict;
  const bool is_ended_inside = log.reason == FinishReason::kEos ||
                               log.reason == FinishReason::kStop ||
                               log.reason == FinishReason::kGrammar;
  const FinishReason expected = is_ended_inside ? log.reason : FinishReason::kLength;
  verdict.is_same_end = replay.reason == expected && replay.text == log.text;
  verdict.are_logits_same = !log.logits_hash || *log.logits_hash == replay.stats.logits_hash;
  return verdict;
}

}  // namespace vericache::apps
