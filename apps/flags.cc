#include "apps/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace vericache::apps {
namespace {

// CLI11's way for a callback to refuse a value; main() turns it into the sentence the user sees.
[[noreturn]] void Refuse(const std::string& message) {
  throw CLI::ValidationError(message, CLI::ExitCodes::ValidationError);
}

std::string LongName(const Flag& flag) { return flag.names.substr(flag.names.rfind(',') + 1); }

CLI::Option* AddOption(CLI::App& app, const Flag& flag, const std::string& shown_default,
                       CLI::callback_t on_values) {
  std::string help = flag.help;
  if (!shown_default.empty()) help += fmt::format(" (default: {})", shown_default);
  return app.add_option(flag.names, std::move(on_values), help)
      ->option_text(flag.value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

template <typename Number>
std::optional<Number> Parse(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string Describe(IntRange range) {
  if (range.max == std::numeric_limits<int>::max()) {
    return fmt::format("a whole number from {} up", range.min);
  }
  return fmt::format("a whole number from {} to {}", range.min, range.max);
}

int CheckedInt(const Flag& flag, IntRange range, std::string_view text) {
  const auto number = ParseInteger(text);
  if (!number || *number < range.min || *number > range.max) {
    Refuse(fmt::format("{} takes {}, not '{}'", LongName(flag), Describe(range), text));
  }
  return static_cast<int>(*number);
}

}  // namespace

std::optional<int64_t> ParseInteger(std::string_view text) { return Parse<int64_t>(text); }
std::optional<uint64_t> ParseUnsigned(std::string_view text) { return Parse<uint64_t>(text); }
std::optional<double> ParseNumber(std::string_view text) { return Parse<double>(text); }

std::optional<size_t> ParseBytes(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = ParseNumber(text.substr(0, digits));
  if (!number) return std::nullopt;
  std::string suffix(text.substr(digits));
  for (const std::string_view tail : {"iB", "B"}) {
    if (suffix.ends_with(tail)) {
      suffix.resize(suffix.size() - tail.size());
      break;
    }
  }
  constexpr std::string_view kSuffixes = "KMGT";
  double factor = 1;
  if (!suffix.empty()) {
    const size_t power = kSuffixes.find(static_cast<char>(std::toupper(suffix[0])));
    if (suffix.size() != 1 || power == std::string_view::npos) return std::nullopt;
    factor = std::ldexp(1.0, 10 * (static_cast<int>(power) + 1));
  }
  const double bytes = *number * factor;
  if (!(bytes >= 0 && bytes < 0x1p62)) return std::nullopt;
  return static_cast<size_t>(bytes);
}

CLI::App& AddCommand(CLI::App& app, const char* name, const char* help,
                     std::function<void()> when_chosen) {
  CLI::App* command = app.add_subcommand(name, help);
  command->callback(std::move(when_chosen));
  return *command;
}

void SetFooter(CLI::App& app, const char* text) { app.footer(text); }

void AddSwitch(CLI::App& app, const char* name, const char* help, bool& value) {
  app.add_flag(name, value, help);
}

void AddRequired(CLI::App& app, const char* name, const char* help, std::string& value) {
  app.add_option(name, value, help)->required()->option_text(" ");
}

void AddText(CLI::App& app, const Flag& flag, std::string& value) {
  AddOption(app, flag, value, [&value](const CLI::results_t& given) {
    value = given.back();
    return true;
  });
}

void AddOptionalText(CLI::App& app, const Flag& flag, std::optional<std::string>& value) {
  AddOption(app, flag, "", [&value](const CLI::results_t& given) {
    value = given.back();
    return true;
  });
}

void AddChoice(CLI::App& app, const Flag& flag, const std::vector<std::string>& choices,
               std::string& value) {
  AddOption(app, flag, value, [flag, choices, &value](const CLI::results_t& given) {
    if (std::find(choices.begin(), choices.end(), given.back()) == choices.end()) {
      Refuse(fmt::format("{} takes one of {}, not '{}'", LongName(flag), fmt::join(choices, ", "),
                         given.back()));
    }
    value = given.back();
    return true;
  });
}

void AddInt(CLI::App& app, const Flag& flag, IntRange range, int& value) {
  AddOption(app, flag, fmt::format("{}", value),
            [flag, range, &value](const CLI::results_t& given) {
              value = CheckedInt(flag, range, given.back());
              return true;
            });
}

void AddNumber(CLI::App& app, const Flag& flag, NumberRange range, float& value) {
  AddOption(app, flag, fmt::format("{}", value),
            [flag, range, &value](const CLI::results_t& given) {
              const auto number = ParseNumber(given.back());
              if (!number || !(*number >= range.min && *number <= range.max)) {
                Refuse(fmt::format("{} takes a number from {} to {}, not '{}'", LongName(flag),
                                   range.min, range.max, given.back()));
              }
              value = static_cast<float>(*number);
              return true;
            });
}

void AddBytes(CLI::App& app, const Flag& flag, size_t& value) {
  const std::string shown =
      value % (size_t{1} << 30) == 0 ? fmt::format("{}G", value >> 30) : fmt::format("{}", value);
  AddOption(app, flag, shown, [flag, &value](const CLI::results_t& given) {
    const auto bytes = ParseBytes(given.back());
    if (!bytes || *bytes == 0) {
      Refuse(fmt::format("{} takes a number of bytes such as 512M or 4G, not '{}'", LongName(flag),
                         given.back()));
    }
    value = *bytes;
    return true;
  });
}

void AddIntList(CLI::App& app, const Flag& flag, IntRange range, std::vector<int>& values) {
  AddOption(app, flag, fmt::format("{}", fmt::join(values, ",")),
            [flag, range, &values](const CLI::results_t& given) {
              values.clear();
              for (const std::string& text : CLI::detail::split(given.back(), ',')) {
                values.push_back(CheckedInt(flag, range, text));
              }
              return true;
            });
}

void AddNumberList(CLI::App& app, const Flag& flag, NumberRange range,
                   std::vector<double>& values) {
  AddOption(app, flag, fmt::format("{}", fmt::join(values, ",")),
            [flag, range, &values](const CLI::results_t& given) {
              values.clear();
              for (const std::string& text : CLI::detail::split(given.back(), ',')) {
                const auto number = ParseNumber(text);
                if (!number || !(*number > range.min && *number <= range.max)) {
                  Refuse(fmt::format("{} takes numbers above {} and up to {}, not '{}'",
                                     LongName(flag), range.min, range.max, text));
                }
                values.push_back(*number);
              }
              return true;
            });
}

void AddRepeated(CLI::App& app, const Flag& flag, std::vector<std::string>& values) {
  AddOption(app, flag, "", [&values](const CLI::results_t& given) {
    values = given;
    return true;
  })->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace vericache::apps
