#include "apps/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "apps/wrap.h"

namespace vericache::apps {
namespace {

// CLI11's way for a callback to refuse a value; main() turns it into the sentence the user sees.
[[noreturn]] void Refuse(const std::string& message) {
  throw CLI::ValidationError(message, CLI::ExitCodes::ValidationError);
}

constexpr size_t kNameColumns = 34;
constexpr size_t kHelpColumnsMin = 24;

// CLI11's own breaks no line.
class HelpLayout final : public CLI::Formatter {
 public:
  explicit HelpLayout(size_t width)
      : help_columns_(std::max(width, kNameColumns + kHelpColumnsMin) - kNameColumns) {
    column_width(kNameColumns);
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return Wrapped(option->get_description(), help_columns_);
  }

 private:
  size_t help_columns_;
};

// Choices are kept in the option's type name, which option_text keeps out of the help.
constexpr const char* kChoiceSeparator = "|";

FlagInfo Describe(const CLI::Option& option) {
  FlagInfo info{.names = {},
                .value = option.get_option_text(),
                .help = option.get_description(),
                .choices = {}};
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  if (info.names.empty()) info.value = option.get_name();
  const std::string type = option.get_type_name();
  if (type.find(kChoiceSeparator) != std::string::npos) {
    info.choices = CLI::detail::split(type, kChoiceSeparator[0]);
  }
  return info;
}

CommandInfo Describe(const CLI::App& app, const std::string& name) {
  CommandInfo info{
      .name = name, .help = app.get_description(), .footer = app.get_footer(), .flags = {}};
  for (const CLI::Option* option : app.get_options()) info.flags.push_back(Describe(*option));
  return info;
}

// All commands under `app`, by the names that call them: "bench", "bench acceptance".
template <typename App>
void ListCommands(App& app, const std::string& before,
                  std::vector<std::pair<std::string, App*>>& commands) {
  for (App* command : app.get_subcommands({})) {
    const std::string name = before + command->get_name();
    commands.emplace_back(name, command);
    ListCommands(*command, name + " ", commands);
  }
}

template <typename App>
std::vector<std::pair<std::string, App*>> ListCommands(App& app) {
  std::vector<std::pair<std::string, App*>> commands;
  ListCommands(app, "", commands);
  return commands;
}

// The option that a key of the file names; nullptr if the command has none that a file may set.
CLI::Option* OptionOf(CLI::App& command, const std::string& key) {
  CLI::Option* option = command.get_option_no_throw("--" + key);
  if (option == nullptr && key.size() == 1) option = command.get_option_no_throw("-" + key);
  return option != nullptr && option->get_configurable() ? option : nullptr;
}

// CLI11 says what is wrong with a value by throwing.
Status SetOption(CLI::Option& option, const Setting& setting) {
  if (setting.values.size() > 1 &&
      option.get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll) {
    return MakeError(ErrorCode::kInvalidArgument, "line {}: '{}' takes one value, not {}",
                     setting.line, setting.key, setting.values.size());
  }
  if (!option.empty()) return {};  // what came first counts
  try {
    if (option.get_expected_min() == 0) {
      option.add_result(option.get_flag_value(setting.key, setting.values.front()));
    } else {
      option.add_result(setting.values);
    }
    option.run_callback();
  } catch (const CLI::Error& error) {
    return MakeError(ErrorCode::kInvalidArgument, "line {}: {}", setting.line, error.what());
  }
  return {};
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

std::vector<CommandInfo> DescribeCommands(const CLI::App& app) {
  std::vector<CommandInfo> commands = {Describe(app, "")};
  for (const auto& [name, command] : ListCommands(app)) {
    commands.push_back(Describe(*command, name));
  }
  return commands;
}

void SetHelpWidth(CLI::App& app, size_t width) {
  app.formatter(std::make_shared<HelpLayout>(width));
}

Result<std::string> HelpText(const CLI::App& app, const std::string& command) {
  if (command.empty()) {  // App::help would be that of the command given, which is `help`
    return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
  }
  std::vector<std::string> names;
  for (const auto& [name, known] : ListCommands(app)) {
    if (name == command) {
      const size_t before = name.rfind(' ');
      return known->help(before == std::string::npos
                             ? app.get_name()
                             : app.get_name() + " " + name.substr(0, before));
    }
    names.push_back(name);
  }
  return MakeError(ErrorCode::kInvalidArgument, "there is no command '{}'; there are {}", command,
                   fmt::join(names, ", "));
}

Status ApplySettings(CLI::App& app, const std::vector<Setting>& settings) {
  for (const bool is_for_all : {false, true}) {  // a command's own come first
    for (const Setting& setting : settings) {
      if (setting.command.empty() != is_for_all) continue;
      bool is_known = false;
      for (const auto& [name, command] : ListCommands(app)) {
        if (!is_for_all && name != setting.command) continue;
        CLI::Option* option = OptionOf(*command, setting.key);
        if (option == nullptr) continue;
        is_known = true;
        VC_RETURN_IF_ERROR(SetOption(*option, setting));
      }
      if (is_known) continue;
      std::string place = is_for_all ? "" : setting.command + ".";  // as the file has it
      std::replace(place.begin(), place.end(), ' ', '.');
      return MakeError(ErrorCode::kInvalidArgument, "line {}: '{}{}' is no option of a command",
                       setting.line, place, setting.key);
    }
  }
  return {};
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

void AddWords(CLI::App& app, const char* name, const char* help, std::vector<std::string>& words) {
  app.add_option(name, words, help)->option_text(" ");
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
  })->type_name(fmt::format("{}", fmt::join(choices, kChoiceSeparator)));
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
