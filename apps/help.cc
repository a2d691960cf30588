// vericache help: the help of a command, the manual page, completions for a shell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "apps/flags.h"
#include "apps/manual.h"
#include "apps/output_file.h"
#include "apps/version.h"

namespace vericache::apps {
namespace {

struct HelpOptions {
  std::vector<std::string> command;  // its words
  bool is_manual = false;
  std::string shell;
};

Result<std::string> HelpFor(const CLI::App& app, const HelpOptions& options) {
  const std::vector<CommandInfo> commands = DescribeCommands(app);
  if (options.is_manual) return ManualPage(commands, VersionLine());
  if (!options.shell.empty()) return BashCompletion(commands);
  return HelpText(app, fmt::format("{}", fmt::join(options.command, " ")));
}

int Help(const CLI::App& app, const HelpOptions& options) {
  const auto text = HelpFor(app, options);
  const Status status = text ? Print(stdout, *text) : tl::unexpected(text.error());
  return status ? 0 : ReportError("help", status.error());
}

}  // namespace

void AddHelp(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<HelpOptions>();
  CLI::App& command = AddCommand(
      app, "help", "explains a command; writes the manual and completions",
      [options, &app, &chosen] { chosen = [options, &app] { return Help(app, *options); }; });
  AddWords(command, "COMMAND", "the command to explain", options->command);
  AddSwitch(command, "--man", "writes the manual page, for man -l", options->is_manual);
  AddChoice(command, {"--completion", "SHELL", "writes completions for a shell: bash"}, {"bash"},
            options->shell);
  SetFooter(command,
            "  vericache help --man | man -l -\n"
            "  source <(vericache help --completion bash)");
}

}  // namespace vericache::apps
