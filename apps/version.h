// What this binary is: version, commit, build, and which kernel paths run on this machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vericache::apps {

struct KernelPath {
  std::string_view name;
  bool is_available = false;  // this CPU and operating system offer its instructions
};

// Every path compiled in, slowest first.
std::vector<KernelPath> CompiledPaths();

// The features of this CPU that paths can use, as the operating system names them.
std::vector<std::string> CpuFeatures();
std::string CpuName();

// "0.1.0 (commit 0123456789ab)"
std::string VersionLine();
// What `vericache --version` prints.
std::string VersionText();

}  // namespace vericache::apps
