#include "model/json_schema.h"

#include <json-schema-to-grammar.h>

#include <algorithm>
#include <exception>

namespace vericache::model {
namespace {

// llama-common walks a schema, and the references within it, by recursion: these keep it within a
// thread's stack.
constexpr size_t kMaxSchemaBytes = size_t{128} << 10;
constexpr int kMaxDepth = 200;

int Depth(std::string_view json) {
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

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

Result<std::string> GrammarFromJsonSchema(std::string_view schema) {
  if (schema.size() > kMaxSchemaBytes) {
    return MakeError(ErrorCode::kUnsupported, "the JSON schema has {} bytes; {} are the most",
                     schema.size(), kMaxSchemaBytes);
  }
  if (const int depth = Depth(schema); depth > kMaxDepth) {
    return MakeError(ErrorCode::kUnsupported,
                     "the JSON schema is nested {} deep; {} levels are the most", depth, kMaxDepth);
  }
  try {
    return json_schema_to_grammar(common_json::parse(std::string(schema)));
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInvalidArgument, "the JSON schema is wrong: {}",
                     OneLine(error.what()));
  }
}

}  // namespace vericache::model
