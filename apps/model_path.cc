#include "apps/model_path.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace vericache::apps {
namespace {

constexpr std::array<std::string_view, 3> kModelNames = {"smollm2-135m", "qwen2.5-coder-0.5b",
                                                         "qwen2.5-coder-1.5b"};

std::filesystem::path CacheFolder() {
  if (const char* folder = std::getenv("VERICACHE_CACHE"); folder != nullptr && *folder != '\0') {
    return folder;
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/") / ".cache" / "vericache";
}

}  // namespace

Result<std::string> ResolveModelPath(const std::string& path_or_name) {
  std::error_code ignored;  // unreadable is not there: opening it later says why
  if (std::filesystem::exists(path_or_name, ignored)) return path_or_name;
  if (std::find(kModelNames.begin(), kModelNames.end(), path_or_name) == kModelNames.end()) {
    return MakeError(ErrorCode::kNotFound,
                     "there is no model file '{}'; the names known are {}, {} and {}", path_or_name,
                     kModelNames[0], kModelNames[1], kModelNames[2]);
  }
  const std::filesystem::path path = CacheFolder() / "models" / (path_or_name + ".gguf");
  if (!std::filesystem::exists(path, ignored)) {
    return MakeError(ErrorCode::kNotFound, "{} is not at {}; ./dev model {} fetches it",
                     path_or_name, path.string(), path_or_name);
  }
  return path.string();
}

}  // namespace vericache::apps
