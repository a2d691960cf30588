// A file of defaults is refused with the line, or gives each option its values.
#include <CLI/CLI.hpp>

#include "apps/flags.h"
#include "base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace vericache::fuzz {
namespace {

struct Options {
  int n_predict = 128;
  float temperature = 0.8f;
  bool is_raw = false;
  std::string mode = "full";
  std::vector<std::string> stop;
  std::vector<int> draft_lens = {16};
};

// A command and one of its own, with an option of each kind.
void AddCommands(CLI::App& app, Options& options) {
  CLI::App& run = apps::AddCommand(app, "run", "", [] {});
  apps::AddInt(run, {"-n,--predict", "N", ""}, {-1, 1000}, options.n_predict);
  apps::AddNumber(run, {"--temp", "T", ""}, {0, 100}, options.temperature);
  apps::AddSwitch(run, "--raw", "", options.is_raw);
  apps::AddChoice(run, {"--mode", "MODE", ""}, {"full", "lossy"}, options.mode);
  apps::AddRepeated(run, {"--stop", "TEXT", ""}, options.stop);
  CLI::App& inner = apps::AddCommand(run, "inner", "", [] {});
  apps::AddIntList(inner, {"--draft-len", "N,...", ""}, {1, 127}, options.draft_lens);
}

}  // namespace

bool RunOne(std::span<const uint8_t> input) {
  const auto settings = apps::ParseConfig(AsText(input));
  if (!settings) {
    VC_CHECK(settings.error().message.starts_with("line "), "{}", settings.error().message);
    return false;
  }
  for (const apps::Setting& setting : *settings) {
    VC_CHECK(!setting.values.empty() && setting.line > 0, "{}", setting.key);
  }
  CLI::App app;
  Options options;
  AddCommands(app, options);
  const Status status = apps::ApplySettings(app, *settings);
  VC_CHECK(status || status.error().message.starts_with("line "), "{}", status.error().message);
  VC_CHECK(options.n_predict >= -1 && options.n_predict <= 1000 && options.temperature >= 0);
  return status.has_value();
}

std::vector<std::string> Seeds() {
  return {"predict = 7\n[run]\nraw = true\ntemp = 0.5 # warm\nstop = [\"a, b\", '[c]']\n",
          "[run]\nmode = 'lossy'\nn = -1\nstop = \"\"\"two\nlines\"\"\"\n[run.inner]\n"
          "draft-len = \"8,16\"\n",
          ""};
}

}  // namespace vericache::fuzz
