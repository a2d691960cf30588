// Command-line options whose errors name the value given and say what is right, and whose help
// shows the default that really holds: both come from the one entry that declares the option.
//
// Threads: one thread, before anything else starts.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/config_file.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace vericache::apps {

// How an option is called and explained.
struct Flag {
  std::string names;  // "-n,--predict"
  std::string value;  // what the help calls its value: "N"
  std::string help;
};

struct IntRange {
  int min = std::numeric_limits<int>::min();
  int max = std::numeric_limits<int>::max();
};

struct NumberRange {
  double min = 0;
  double max = 0;
};

// Adds a command; what it returns takes the command's options. `when_chosen` runs once the whole
// command line has been read.
CLI::App& AddCommand(CLI::App& app, const char* name, const char* help,
                     std::function<void()> when_chosen);
// What an option is to a manual.
struct FlagInfo {
  std::vector<std::string> names;  // with their dashes; empty: an argument without a name
  std::string value;               // what its value is called; empty: it takes none
  std::string help;
  std::vector<std::string> choices;  // of its value, if they are few
};
struct CommandInfo {
  std::string name;  // "bench acceptance"; empty: the binary itself
  std::string help;
  std::string footer;
  std::vector<FlagInfo> flags;  // in the order of the help
};
// The binary, then its commands, each followed by commands of its own.
std::vector<CommandInfo> DescribeCommands(const CLI::App& app);
// The columns that the help of `app`, and of commands added later, takes at most.
void SetHelpWidth(CLI::App& app, size_t width);
// What --help prints; of the binary for "". Errors: kInvalidArgument for a command unknown.
Result<std::string> HelpText(const CLI::App& app, const std::string& command);

// Gives options the values of a file of defaults, but for those that the command line has given: to
// be called once it has been read. Errors: kInvalidArgument with the line.
Status ApplySettings(CLI::App& app, const std::vector<Setting>& settings);

// Text at the end of the help.
void SetFooter(CLI::App& app, const char* text);
// An option without a value.
void AddSwitch(CLI::App& app, const char* name, const char* help, bool& value);
// An argument without a name, which must be given.
void AddRequired(CLI::App& app, const char* name, const char* help, std::string& value);
// Any number of them, or none.
void AddWords(CLI::App& app, const char* name, const char* help, std::vector<std::string>& words);

// Each adds an option to `app` that writes `value`; the default shown is the value it has now.
// Given twice, the last one counts, as in llama.cpp.
void AddText(CLI::App& app, const Flag& flag, std::string& value);
void AddOptionalText(CLI::App& app, const Flag& flag, std::optional<std::string>& value);
void AddChoice(CLI::App& app, const Flag& flag, const std::vector<std::string>& choices,
               std::string& value);
void AddInt(CLI::App& app, const Flag& flag, IntRange range, int& value);
void AddNumber(CLI::App& app, const Flag& flag, NumberRange range, float& value);
void AddBytes(CLI::App& app, const Flag& flag, size_t& value);
// A comma-separated list of whole numbers.
void AddIntList(CLI::App& app, const Flag& flag, IntRange range, std::vector<int>& values);
// The same of numbers above `range.min` and up to `range.max`.
void AddNumberList(CLI::App& app, const Flag& flag, NumberRange range, std::vector<double>& values);
// May be given several times; every value is kept.
void AddRepeated(CLI::App& app, const Flag& flag, std::vector<std::string>& values);

// The number written in all of `text`; nullopt if it is none.
std::optional<int64_t> ParseInteger(std::string_view text);
std::optional<uint64_t> ParseUnsigned(std::string_view text);
std::optional<double> ParseNumber(std::string_view text);
// "4G", "512M", "1.5GiB", "1000": powers of 1024.
std::optional<size_t> ParseBytes(std::string_view text);

}  // namespace vericache::apps
