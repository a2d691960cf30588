// Real models, for slow tests: fetched by ./dev model NAME, never by a test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace vericache::testing_support {

// ${VERICACHE_CACHE:-~/.cache/vericache}/models/NAME.gguf; a missing file fails the test.
inline std::string RealModelPath(const std::string& name) {
  const char* folder = std::getenv("VERICACHE_CACHE");
  const char* home = std::getenv("HOME");
  const std::string cache = folder != nullptr && *folder != '\0'
                                ? std::string(folder)
                                : std::string(home != nullptr ? home : "") + "/.cache/vericache";
  const std::string path = cache + "/models/" + name + ".gguf";
  if (!std::filesystem::exists(path)) {
    ADD_FAILURE() << "missing model " << path << ": ./dev model " << name;
  }
  return path;
}

}  // namespace vericache::testing_support
