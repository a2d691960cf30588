#include "base/machine_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

namespace vericache {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The first number of a file; nullopt for none ("max", -1, no file).
std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::istringstream text(ReadText(path));
  std::string word;
  text >> word;
  if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos) return {};
  return std::strtoull(word.c_str(), nullptr, 10);  // the largest number if it does not fit
}

// A line "NAME: 123 kB" or "name 123"; nullopt if there is none.
std::optional<uint64_t> ReadField(const std::string& path, std::string_view name) {
  std::istringstream lines(ReadText(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    uint64_t value = 0;
    if (words >> word >> value && word == name) return value;
  }
  return {};
}

uint64_t Difference(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// The folders of this process's control group, from its own up to the root's. controller: "" for
// version 2, "memory" or "cpu" for version 1.
std::vector<std::string> GroupFolders(const std::string& root, const std::string& controller) {
  std::istringstream lines(ReadText(root + "/proc/self/cgroup"));
  std::string base = root + "/sys/fs/cgroup";
  if (!controller.empty()) base += "/" + controller;
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/path"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    if (fmt::format(",{},", names).find(fmt::format(",{},", controller)) == std::string::npos)
      continue;
    std::vector<std::string> folders;
    std::string path = line.substr(second + 1);
    for (; path.size() > 1 && path.front() == '/'; path.resize(path.rfind('/')))
      folders.push_back(base + path);
    folders.push_back(base);
    return folders;
  }
  return {};
}

struct MemoryFiles {
  std::string controller;
  std::string limit;
  std::string used;
  std::string cache;  // a field of memory.stat: what goes as soon as somebody needs the room
};

void TakeMemory(const std::string& root, const MemoryFiles& names, MachineLimits& limits) {
  for (const std::string& folder : GroupFolders(root, names.controller)) {
    const uint64_t limit = ReadNumber(folder + "/" + names.limit).value_or(kUnlimited);
    if (limit >= limits.memory_bytes) continue;
    limits.memory_bytes = limit;
    const uint64_t used = Difference(ReadNumber(folder + "/" + names.used).value_or(0),
                                     ReadField(folder + "/memory.stat", names.cache).value_or(0));
    limits.available_bytes = std::min(limits.available_bytes, Difference(limit, used));
  }
}

void TakeQuota(uint64_t quota, uint64_t period, MachineLimits& limits) {
  if (period == 0) return;
  const uint64_t n_cores = std::max<uint64_t>(1, quota / period);
  limits.n_cores =
      static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(limits.n_cores), n_cores));
}

void TakeCores(const std::string& root, MachineLimits& limits) {
  for (const std::string& folder : GroupFolders(root, "")) {
    std::istringstream text(ReadText(folder + "/cpu.max"));  // "150000 100000", "max 100000"
    uint64_t quota = 0;
    uint64_t period = 0;
    if (text >> quota >> period) TakeQuota(quota, period, limits);
  }
  for (const std::string& folder : GroupFolders(root, "cpu")) {
    const auto quota = ReadNumber(folder + "/cpu.cfs_quota_us");
    const auto period = ReadNumber(folder + "/cpu.cfs_period_us");
    if (quota && period) TakeQuota(*quota, *period, limits);
  }
}

}  // namespace

MachineLimits ReadMachineLimits(const std::string& root) {
  const std::string meminfo = root + "/proc/meminfo";
  const auto bytes = [&](std::string_view field) {
    return ReadField(meminfo, field).value_or(kUnlimited / 4096) * 1024;
  };
  MachineLimits limits;
  limits.n_cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  limits.memory_bytes = bytes("MemTotal:");
  limits.available_bytes =
      bytes("MemAvailable:") + ReadField(meminfo, "SwapFree:").value_or(0) * 1024;
  TakeMemory(root, {"", "memory.max", "memory.current", "inactive_file"}, limits);
  TakeMemory(root,
             {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
             limits);
  TakeCores(root, limits);
  return limits;
}

}  // namespace vericache
