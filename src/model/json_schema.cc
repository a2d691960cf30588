#include "model/json_schema.h"

#include <json-schema-to-grammar.h>

#include <algorithm>
#include <exception>

#include "model/json_depth.h"

namespace vericache::model {
namespace {

// llama-common walks a schema, and the references within it, by recursion: this and kMaxJsonDepth
// keep it within a thread's stack.
constexpr size_t kMaxSchemaBytes = size_t{128} << 10;

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
  if (const int depth = JsonDepth(schema); depth > kMaxJsonDepth) {
    return MakeError(ErrorCode::kUnsupported,
                     "the JSON schema is nested {} deep; {} levels are the most", depth,
                     kMaxJsonDepth);
  }
  try {
    return json_schema_to_grammar(common_json::parse(std::string(schema)));
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInvalidArgument, "the JSON schema is wrong: {}",
                     OneLine(error.what()));
  }
}

}  // namespace vericache::model
