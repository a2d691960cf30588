// The one binary: picks the command, and turns every way a command line can be wrong into one
// sentence.
//
// Exit codes: 0 done; 1 something failed; 2 the call itself is wrong; 130 stopped by Ctrl-C; 141
// the reader of the output went away.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "apps/commands.h"
#include "apps/config_file.h"
#include "apps/flags.h"
#include "apps/output_file.h"
#include "apps/tell.h"
#include "apps/text_file.h"
#include "apps/version.h"
#include "apps/wrap.h"

namespace vericache::apps {
namespace {

// CLI11's refusals in our words: what was given, what is right, where to read more.
std::string Sentence(const CLI::ParseError& error, const std::string& command) {
  const std::string see = fmt::format("{} --help lists what there is", command);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string what = error.what();
    return fmt::format("unknown argument{}; {}", what.substr(what.rfind(": ") + 1), see);
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
  return chosen.empty() ? app.get_name() : app.get_name() + " " + CommandName(*chosen.front());
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

const Flag kConfigFlag = {
    "--config", "FILE",
    "a TOML file that holds defaults: a table for each command, or keys for all of them (default: "
    "~/.config/vericache/config.toml)"};

// Takes the user's defaults: of the file that was named, or of his own where there is one.
Status TakeDefaults(CLI::App& app, const std::optional<std::string>& named) {
  const std::string path = named.value_or(ConfigPath());
  std::error_code unknown;  // a file that cannot be looked at is there, and cannot be read
  if (!named &&
      std::filesystem::status(path, unknown).type() == std::filesystem::file_type::not_found) {
    return {};
  }
  const auto text = ReadTextFile(path);
  VC_RETURN_IF_ERROR(text);
  const auto settings = ParseConfig(*text);
  const Status status = settings ? ApplySettings(app, *settings) : tl::unexpected(settings.error());
  if (status) return {};
  return MakeError(status.error().code, "'{}': {}", path, status.error().message);
}

// A standard stream that the caller closed would be the number of the next file that is opened, a
// log perhaps, and the answer would go there. In its place a stream that fails when it is used.
void FillClosedStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest number that is free: this one.
    const int opened = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    static_cast<void>(opened);
  }
}

int Show(const std::string& text) {
  const Status status = Print(stdout, text);
  if (status) return 0;
  if (status.error().code == ErrorCode::kCancelled) return kExitBrokenPipe;
  Tell("vericache: {}\n", status.error().message);
  return kExitFailure;
}

int Main(int argc, char** argv) {
  FillClosedStreams();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, which each command handles
  CLI::App app(
      "Long-context inference at the speed of a compressed KV, with the text of the full one.",
      "vericache");
  SetHelpWidth(app, OutputWidth());
  app.set_help_flag("-h,--help", "prints this help");
  std::function<int()> command;
  bool wants_version = false;
  app.fallthrough();  // --config may stand behind the command
  app.add_flag("--version", wants_version, "prints version, build and instruction sets");
  for (const auto add :
       {AddRun, AddVerify, AddDrift, AddPerplexity, AddBench, AddDoctor, AddInspect, AddHelp})
    add(app, command);
  std::optional<std::string> config;
  AddOptionalText(app, kConfigFlag, config);
  app.require_subcommand(0, 1);
  app.footer("vericache COMMAND --help explains a command.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Show(app.help());
  } catch (const CLI::ParseError& error) {
    const std::string name = CommandName(app);
    Tell("{}: {}\n", name, Sentence(error, name));
    return kExitUsage;
  }
  if (wants_version) return Show(VersionText());
  if (!command) {
    Tell("vericache: no command given; there are {}; vericache --help says more\n",
         fmt::join(CommandNames(app), ", "));
    return kExitUsage;
  }
  if (const Status taken = TakeDefaults(app, config); !taken) {
    Tell("{}: {}\n", CommandName(app), taken.error().message);
    return kExitUsage;
  }
  return command();
}

}  // namespace
}  // namespace vericache::apps

int main(int argc, char** argv) { return vericache::apps::Main(argc, argv); }
