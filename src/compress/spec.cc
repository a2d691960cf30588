#include "compress/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace vericache::compress {
namespace {

constexpr std::string_view kForm = "name:key=value,key=value, chained with +";

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

Result<MethodSpec> ParseMethod(std::string_view text) {
  const size_t colon = text.find(':');
  MethodSpec method{.name = text.substr(0, colon), .pairs = {}};
  if (method.name.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "a compressor without a name; write {}", kForm);
  }
  if (colon == std::string_view::npos) return method;
  for (const std::string_view part : Split(text.substr(colon + 1), ',')) {
    const size_t equals = part.find('=');
    const SpecPair pair{part.substr(0, equals),
                        equals == std::string_view::npos ? "" : part.substr(equals + 1)};
    if (pair.key.empty() || pair.value.empty()) {
      return MakeError(ErrorCode::kInvalidArgument, "{}: '{}' is not key=value; write {}",
                       method.name, part, kForm);
    }
    const bool is_repeated = std::any_of(method.pairs.begin(), method.pairs.end(),
                                         [&](const SpecPair& p) { return p.key == pair.key; });
    if (is_repeated) {
      return MakeError(ErrorCode::kInvalidArgument, "{}: {} is given twice", method.name, pair.key);
    }
    method.pairs.push_back(pair);
  }
  return method;
}

// The whole text as a number, or nothing.
template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

Result<std::vector<MethodSpec>> ParseSpec(std::string_view text) {
  std::vector<MethodSpec> methods;
  for (const std::string_view part : Split(text, '+')) {
    auto method = ParseMethod(part);
    VC_RETURN_IF_ERROR(method);
    methods.push_back(std::move(*method));
  }
  return methods;
}

const SpecPair* Parameters::Find(std::string_view key) {
  keys_.push_back(key);
  for (const SpecPair& pair : method_.pairs) {
    if (pair.key == key) return &pair;
  }
  return nullptr;
}

void Parameters::Refuse(std::string_view key, std::string_view value, std::string_view allowed) {
  if (!complaint_.empty()) return;
  complaint_ = fmt::format("{}: {} must be {}, not '{}'", method_.name, key, allowed, value);
}

void Parameters::List(std::string_view key, std::string_view value) {
  listing_ += fmt::format("{}{}={}", listing_.empty() ? "" : ",", key, value);
}

double Parameters::Share(std::string_view key, double preset) {
  double share = preset;
  if (const SpecPair* pair = Find(key)) {
    const auto number = ParseNumber<double>(pair->value);
    if (number && *number > 0.0 && *number <= 1.0) {
      share = *number;
    } else {
      Refuse(key, pair->value, "above 0 and at most 1");
    }
  }
  List(key, fmt::format("{}", share));
  return share;
}

double Parameters::Real(std::string_view key, const RealRange& range) {
  double real = range.preset;
  if (const SpecPair* pair = Find(key)) {
    const auto number = ParseNumber<double>(pair->value);
    if (number && *number >= range.low && *number <= range.high) {
      real = *number + 0.0;  // -0 is written 0
    } else {
      Refuse(key, pair->value, fmt::format("a number from {} to {}", range.low, range.high));
    }
  }
  List(key, fmt::format("{}", real));
  return real;
}

int Parameters::Int(std::string_view key, const IntRange& range) {
  int value = range.preset;
  if (const SpecPair* pair = Find(key)) {
    const auto number = ParseNumber<int>(pair->value);
    if (number && *number >= range.low && *number <= range.high) {
      value = *number;
    } else {
      Refuse(key, pair->value, fmt::format("a whole number from {} to {}", range.low, range.high));
    }
  }
  List(key, fmt::format("{}", value));
  return value;
}

int Parameters::Choice(std::string_view key, int preset, std::initializer_list<int> choices) {
  int value = preset;
  if (const SpecPair* pair = Find(key)) {
    const auto number = ParseNumber<int>(pair->value);
    if (number && std::find(choices.begin(), choices.end(), *number) != choices.end()) {
      value = *number;
    } else {
      Refuse(key, pair->value, fmt::format("one of {}", fmt::join(choices, ", ")));
    }
  }
  List(key, fmt::format("{}", value));
  return value;
}

int Parameters::Word(std::string_view key, std::initializer_list<std::string_view> words) {
  const auto* word = words.begin();
  if (const SpecPair* pair = Find(key)) {
    const auto* found = std::find(words.begin(), words.end(), pair->value);
    if (found == words.end()) {
      Refuse(key, pair->value, fmt::format("one of {}", fmt::join(words, ", ")));
    } else {
      word = found;
    }
  }
  List(key, *word);
  return static_cast<int>(word - words.begin());
}

std::string Parameters::Spec() const {
  return listing_.empty() ? std::string(method_.name)
                          : fmt::format("{}:{}", method_.name, listing_);
}

Status Parameters::Check() const {
  for (const SpecPair& pair : method_.pairs) {
    if (std::find(keys_.begin(), keys_.end(), pair.key) != keys_.end()) continue;
    if (keys_.empty()) {
      return MakeError(ErrorCode::kInvalidArgument, "{} has no parameter '{}'; it has none",
                       method_.name, pair.key);
    }
    return MakeError(ErrorCode::kInvalidArgument, "{} has no parameter '{}'; it has {}",
                     method_.name, pair.key, fmt::join(keys_, ", "));
  }
  if (!complaint_.empty()) return MakeError(ErrorCode::kInvalidArgument, "{}", complaint_);
  return {};
}

}  // namespace vericache::compress
