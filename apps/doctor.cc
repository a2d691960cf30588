// vericache doctor: what this machine has, what it reaches, and whether its fast paths give the
// bits of the definition.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "apps/commands.h"
#include "apps/flags.h"
#include "apps/machine_speed.h"
#include "apps/summary.h"
#include "apps/version.h"
#include "base/thread_team.h"
#include "engine/self_test.h"
#include "kernels/kernels.h"
#include "kernels/numerics.h"

namespace vericache::apps {
namespace {

// A field of /proc/meminfo; 0 if there is none.
size_t MemoryBytes(const std::string& field) {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    size_t n_kib = 0;
    if (name == field + ":" && file >> n_kib) return n_kib * 1024;
    std::getline(file, name);
  }
  return 0;
}

int CoreCount() { return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)); }

void PrintMachine() {
  fmt::print("vericache  {}, numerics revision {}\n", VersionLine(), kernels::kNumericsRevision);
  fmt::print("cpu        {}\n", CpuName());
  fmt::print("features   {}\n", fmt::join(CpuFeatures(), " "));
  fmt::print("cores      {} for this process\n", CoreCount());
  fmt::print("memory     {}, {} available\n", FormatBytes(MemoryBytes("MemTotal")),
             FormatBytes(MemoryBytes("MemAvailable")));
}

void PrintSpeeds(const kernels::KernelTable& kernels) {
  ThreadTeam one(1);
  ThreadTeam all(CoreCount());
  fmt::print("memory     read {:.1f} GB/s with 1 thread, {:.1f} GB/s with {}\n",
             MeasureReadBandwidth(one) / 1e9, MeasureReadBandwidth(all) / 1e9, all.Size());
  fmt::print(
      "matmul     {:.0f} GMAC/s with 1 thread, {:.0f} GMAC/s with {} (int8, {}, 64 rows, weights "
      "cached)\n",
      MeasureMatmulRate(kernels, one) / 1e9, MeasureMatmulRate(kernels, all) / 1e9, all.Size(),
      kernels.name);
}

// One line per path, with its self-test where it runs. Returns false if a path gave other bits than
// the definition.
bool PrintPaths() {
  bool is_good = true;
  for (const KernelPath& path : CompiledPaths()) {
    const auto kernels = kernels::SelectKernels(path.name);
    std::string verdict = "compiled, untested: this CPU lacks its instructions";
    if (kernels) {
      const Status status = engine::SelfTest(**kernels);
      verdict = status ? "self-test passed" : "self-test FAILED: " + status.error().message;
      is_good = is_good && status.has_value();
    }
    fmt::print("path       {:<11} {}\n", path.name, verdict);
  }
  return is_good;
}

int Doctor() {
  const auto kernels = kernels::SelectKernels("auto");
  if (!kernels) return ReportError("doctor", kernels.error());
  PrintMachine();
  const bool is_good = PrintPaths();
  PrintSpeeds(**kernels);
  fmt::print("settings   -t {} --isa {} --fast-kv {}G\n", CoreCount(), (*kernels)->name,
             std::max<size_t>(1, MemoryBytes("MemAvailable") / 2 >> 30));
  if (std::fflush(stdout) != 0) return kExitBrokenPipe;
  return is_good ? 0 : kExitFailure;
}

}  // namespace

void AddDoctor(CLI::App& app, Chosen& chosen) {
  AddCommand(app, "doctor", "measures this machine and tests its kernel paths",
             [&chosen] { chosen = Doctor; });
}

}  // namespace vericache::apps
