// vericache doctor: what this machine has, what it reaches, and whether its fast paths give the
// bits of the definition.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "apps/commands.h"
#include "apps/flags.h"
#include "apps/machine_speed.h"
#include "apps/output_file.h"
#include "apps/summary.h"
#include "apps/version.h"
#include "base/machine_limits.h"
#include "base/thread_team.h"
#include "engine/self_test.h"
#include "kernels/kernels.h"
#include "kernels/numerics.h"

namespace vericache::apps {
namespace {

std::string MachineLines(const MachineLimits& limits) {
  return fmt::format(
      "vericache  {}, numerics revision {}\n"
      "cpu        {}\n"
      "features   {}\n"
      "cores      {} for this process\n"
      "memory     {} for this process, {} free\n",
      VersionLine(), kernels::kNumericsRevision, CpuName(), fmt::join(CpuFeatures(), " "),
      limits.n_cores, FormatBytes(limits.memory_bytes), FormatBytes(limits.available_bytes));
}

std::string SpeedLines(const kernels::KernelTable& kernels, int n_cores) {
  ThreadTeam one(1);
  ThreadTeam all(n_cores);
  return fmt::format(
      "memory     read {:.1f} GB/s with 1 thread, {:.1f} GB/s with {}\n"
      "matmul     {:.0f} GMAC/s with 1 thread, {:.0f} GMAC/s with {} (int8, {}, 64 rows, weights "
      "cached)\n",
      MeasureReadBandwidth(one) / 1e9, MeasureReadBandwidth(all) / 1e9, all.Size(),
      MeasureMatmulRate(kernels, one) / 1e9, MeasureMatmulRate(kernels, all) / 1e9, all.Size(),
      kernels.name);
}

// One line per path, with its self-test where it runs. is_good: false if a path gave other bits
// than the definition.
std::string PathLines(bool& is_good) {
  std::string lines;
  for (const KernelPath& path : CompiledPaths()) {
    const auto kernels = kernels::SelectKernels(path.name);
    std::string verdict = "compiled, untested: this CPU lacks its instructions";
    if (kernels) {
      const Status status = engine::SelfTest(**kernels);
      verdict = status ? "self-test passed" : "self-test FAILED: " + status.error().message;
      is_good = is_good && status.has_value();
    }
    lines += fmt::format("path       {:<11} {}\n", path.name, verdict);
  }
  return lines;
}

// Each part is shown as it is known.
Result<int> Examine() {
  const MachineLimits limits = ReadMachineLimits();
  const auto kernels = kernels::SelectKernels("auto");
  VC_RETURN_IF_ERROR(kernels);
  VC_RETURN_IF_ERROR(Print(stdout, MachineLines(limits)));
  bool is_good = true;
  VC_RETURN_IF_ERROR(Print(stdout, PathLines(is_good)));
  VC_RETURN_IF_ERROR(Print(stdout, SpeedLines(**kernels, limits.n_cores)));
  VC_RETURN_IF_ERROR(Print(
      stdout,
      fmt::format("settings   -t {} --isa {} --fast-kv {}G\n", limits.n_cores, (*kernels)->name,
                  std::max<uint64_t>(1, limits.available_bytes / 2 >> 30))));
  return is_good ? 0 : kExitFailure;
}

int Doctor() {
  const auto exit_code = Examine();
  return exit_code ? *exit_code : ReportError("doctor", exit_code.error());
}

}  // namespace

void AddDoctor(CLI::App& app, Chosen& chosen) {
  AddCommand(app, "doctor", "measures this machine and tests its kernel paths",
             [&chosen] { chosen = Doctor; });
}

}  // namespace vericache::apps
