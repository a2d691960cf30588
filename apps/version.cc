#include "apps/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "apps/build_info.inc"  // written by cmake/BuildInfo.cmake
#include "kernels/kernels.h"
#include "kernels/numerics.h"

namespace vericache::apps {
namespace {

// The value of a field of the first processor in /proc/cpuinfo; empty if there is none.
std::string CpuInfoField(const std::string& field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(field)) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

std::vector<KernelPath> CompiledPaths() {
  std::vector<KernelPath> paths;
  for (const std::string_view name : {"ref", "avx2", "avx512", "avx512vnni"}) {
    paths.push_back({name, kernels::SelectKernels(name).has_value()});
  }
  return paths;
}

std::vector<std::string> CpuFeatures() {
  const std::vector<std::string> interesting = {
      "avx2",     "fma",         "f16c",        "avx512f",     "avx512bw", "avx512vl", "avx512dq",
      "avx_vnni", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8"};
  std::istringstream flags(CpuInfoField("flags"));
  std::vector<std::string> all;
  for (std::string flag; flags >> flag;) all.push_back(flag);
  std::vector<std::string> found;
  for (const std::string& flag : interesting) {
    if (std::find(all.begin(), all.end(), flag) != all.end()) found.push_back(flag);
  }
  return found;
}

std::string CpuName() {
  const std::string name = CpuInfoField("model name");
  return name.empty() ? "unknown" : name;
}

std::string VersionLine() {
  return fmt::format("{} (commit {})", VERICACHE_VERSION, VERICACHE_COMMIT);
}

std::string VersionText() {
  std::vector<std::string> compiled;
  std::vector<std::string> available;
  for (const KernelPath& path : CompiledPaths()) {
    compiled.emplace_back(path.name);
    if (path.is_available) available.emplace_back(path.name);
  }
  return fmt::format(
      "vericache {}\n"
      "build     {}, {}\n"
      "cpu       {}: {}\n"
      "numerics  revision {}\n"
      "paths     compiled: {}; available here: {}\n",
      VersionLine(), VERICACHE_COMPILER, VERICACHE_BUILD_FLAGS, CpuName(),
      fmt::join(CpuFeatures(), " "), kernels::kNumericsRevision, fmt::join(compiled, " "),
      fmt::join(available, " "));
}

}  // namespace vericache::apps
