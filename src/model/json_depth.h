// How deep a JSON text is nested: readers that recurse are given none that could exhaust a stack.
#pragma once

#include <string_view>

namespace vericache::model {

// llama-common and nlohmann/json walk values by recursion; so deep they stay far within a thread's
// stack, and nothing written by hand or by a program for people comes near.
inline constexpr int kMaxJsonDepth = 200;

// Objects and arrays open at once, at most. Of what is no JSON: no fewer than a reader would open
// before it finds the mistake.
int JsonDepth(std::string_view json);

// The same of the JSON that a text has somewhere in it, wherever a reader begins: an upper bound.
int JsonDepthWithin(std::string_view text);

}  // namespace vericache::model
