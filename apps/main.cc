// The one binary: picks the command, and turns every way a command line can be wrong into one
// sentence.
//
// Exit codes: 0 done; 1 something failed; 2 the call itself is wrong; 130 stopped by Ctrl-C; 141
// the reader of the output went away.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "apps/config_file.h"
#include "apps/flags.h"
#include "apps/tell.h"
#include "apps/version.h"

namespace vericache::apps {
namespace {

// CLI11's refusals in our words: what was given, what is right, where to read more.
std::string Sentence(const CLI::ParseError& error, const std::string& command) {
  const std::string see = fmt::format("{} --help lists what there is", command);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string what = error.what();
    return fmt::format("unknown argument{}; {}", what.substr(what.rfind(": ") + 1), see);
  }
  if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr) {
    const std::string what = error.what();
    const std::string unknown = "INI was not able to parse ";
    return what.starts_with(unknown)
               ? fmt::format("'{}' is no option of a command; {}", what.substr(unknown.size()), see)
               : what;
  }
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr) {
    return fmt::format("cannot read {}", error.what());
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string what = error.what();
    return fmt::format("{} needs a value; {}", what.substr(0, what.find(':')), see);
  }
  return error.what();
}

// The deepest command named on the line, for messages.
std::string CommandName(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "vericache" : "vericache " + chosen.front()->get_name();
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

int Main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, which each command handles
  CLI::App app(
      "Long-context inference at the speed of a compressed KV, with the text of the full one.",
      "vericache");
  app.get_formatter()->column_width(34);
  app.set_help_flag("-h,--help", "prints this help");
  std::function<int()> command;
  bool wants_version = false;
  app.fallthrough();  // --config may stand behind the command
  app.add_flag("--version", wants_version, "prints version, build and instruction sets");
  for (const auto add :
       {AddRun, AddVerify, AddDrift, AddPerplexity, AddBench, AddDoctor, AddInspect, AddHelp})
    add(app, command);
  AddConfig(app, ConfigPath());
  app.require_subcommand(0, 1);
  app.footer("vericache COMMAND --help explains a command.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string name = CommandName(app);
    Tell("{}: {}\n", name, Sentence(error, name));
    return kExitUsage;
  }
  if (wants_version) {
    std::fputs(VersionText().c_str(), stdout);
    return 0;
  }
  if (!command) {
    Tell("vericache: no command given; there are {}; vericache --help says more\n",
         fmt::join(CommandNames(app), ", "));
    return kExitUsage;
  }
  return command();
}

}  // namespace
}  // namespace vericache::apps

int main(int argc, char** argv) { return vericache::apps::Main(argc, argv); }
