// The commands of the binary: each declares its options on `app` and, when it is chosen, leaves in
// `chosen` what to run. The function returned gives the exit code.
#pragma once

#include <functional>

#include "base/result.h"

namespace CLI {
class App;
}

namespace vericache::apps {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells report it
inline constexpr int kExitBrokenPipe = 141;   // 128 + SIGPIPE

using Chosen = std::function<int()>;

void AddRun(CLI::App& app, Chosen& chosen);
void AddBench(CLI::App& app, Chosen& chosen);
void AddBenchAcceptance(CLI::App& bench, Chosen& chosen);  // a command of bench
void AddDoctor(CLI::App& app, Chosen& chosen);
void AddInspect(CLI::App& app, Chosen& chosen);
void AddHelp(CLI::App& app, Chosen& chosen);
void AddVerify(CLI::App& app, Chosen& chosen);
void AddPerplexity(CLI::App& app, Chosen& chosen);
void AddDrift(CLI::App& app, Chosen& chosen);

// Says on stderr what went wrong, in one sentence after the command's name, and gives the exit
// code: 2 for a value that can never be right (kInvalidArgument), 1 otherwise. A reader that went
// away (kCancelled) is told nothing: 141.
int ReportError(const char* command, const Error& error);

}  // namespace vericache::apps
