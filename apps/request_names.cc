#include "apps/request_names.h"

#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace vericache::apps {
namespace {

using decode::DrafterKind;
using decode::FinishReason;
using decode::Mode;

template <typename Value>
using Named = std::pair<Value, std::string_view>;

constexpr std::array<Named<Mode>, 3> kModes = {
    {{Mode::kFull, "full"}, {Mode::kLossy, "lossy"}, {Mode::kVerified, "verified"}}};
constexpr std::array<Named<DrafterKind>, 4> kDrafters = {{{DrafterKind::kKv, "kv"},
                                                          {DrafterKind::kNgram, "ngram"},
                                                          {DrafterKind::kBoth, "both"},
                                                          {DrafterKind::kGiven, "given"}}};
constexpr std::array<Named<FinishReason>, 8> kReasons = {{{FinishReason::kNone, "none"},
                                                          {FinishReason::kEos, "eos"},
                                                          {FinishReason::kStop, "stop"},
                                                          {FinishReason::kLength, "length"},
                                                          {FinishReason::kContext, "context"},
                                                          {FinishReason::kGrammar, "grammar"},
                                                          {FinishReason::kCancelled, "cancelled"},
                                                          {FinishReason::kError, "error"}}};

template <typename Names, typename Value>
std::string_view NameOf(const Names& names, Value value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "unknown";
}

template <typename Value, size_t kCount>
Result<Value> ValueOf(const std::array<Named<Value>, kCount>& names, std::string_view what,
                      std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& [value, its_name] : names) {
    if (its_name == name) return value;
    known.push_back(its_name);
  }
  return MakeError(ErrorCode::kInvalidArgument, "{} is one of {}, not '{}'", what,
                   fmt::join(known, ", "), name);
}

}  // namespace

std::string_view ModeName(Mode mode) { return NameOf(kModes, mode); }
std::string_view DrafterName(DrafterKind drafter) { return NameOf(kDrafters, drafter); }
std::string_view FinishReasonName(FinishReason reason) { return NameOf(kReasons, reason); }

Result<Mode> ParseMode(std::string_view name) { return ValueOf(kModes, "a mode", name); }
Result<FinishReason> ParseFinishReason(std::string_view name) {
  return ValueOf(kReasons, "a finish reason", name);
}

}  // namespace vericache::apps
