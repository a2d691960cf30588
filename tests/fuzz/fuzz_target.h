// What every fuzz target defines. Built by clang with libFuzzer it looks for inputs of its own
// (./dev fuzz); built like any test (replay_main.cc) it runs its seeds, damaged in a few hundred
// ways, and the inputs that once failed (tests/fuzz/corpus).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vericache::fuzz {

// One input, whatever it holds; true if it was taken for good. Wrong: an end by a signal, a check
// or a sanitizer, or no end.
bool RunOne(std::span<const uint8_t> input);
// Good inputs, where searching begins.
std::vector<std::string> Seeds();

inline std::string_view AsText(std::span<const uint8_t> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

}  // namespace vericache::fuzz
