#include "model/json_depth.h"

#include <algorithm>
#include <limits>

namespace vericache::model {

int JsonDepth(std::string_view json) {
  int depth = 0;
  int deepest = 0;
  bool is_in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      is_in_string = c != '"';
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

int JsonDepthWithin(std::string_view text) {
  constexpr int kNowhere = std::numeric_limits<int>::min() / 2;
  // The most that is open now for readers that began anywhere and are outside of strings, within
  // one, or behind its backslash.
  int outside = 0;
  int inside = kNowhere;
  int escaped = kNowhere;
  int deepest = 0;
  for (const char c : text) {
    const int was_inside = inside;
    inside = std::max(c == '"' ? outside : (c == '\\' ? kNowhere : inside), escaped);
    escaped = c == '\\' ? was_inside : kNowhere;
    if (c == '"') outside = was_inside;
    if (c == '{' || c == '[') ++outside;
    if (c == '}' || c == ']') --outside;
    outside = std::max(outside, 0);  // one begins here
    deepest = std::max(deepest, outside);
  }
  return deepest;
}

}  // namespace vericache::model
