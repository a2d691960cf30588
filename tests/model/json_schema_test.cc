// Goal: what a schema's grammar lets through is JSON of that schema, whatever the logits say;
// what is no schema is refused with the reason (S13, J7).
// Method: walks over random logits that hurry to an end, parsed by an independent JSON library
// and checked by hand-written conditions.

#include "model/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "model/filters.h"
#include "tests/support/property.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const Tokenizer& TinyTokenizer() {
  static const testing_support::TinyModelFile file;
  static const auto tokenizer = Tokenizer::Load(file.Path());
  VC_CHECK(tokenizer.has_value());
  return **tokenizer;
}

// A text that the grammar allows in full: random, more and more eager for what closes.
std::string Walk(const std::string& grammar, testing_support::Rng& rng) {
  auto filters = Filters::Make({.grammar = grammar}, TinyTokenizer(), 100);
  VC_CHECK(filters.has_value(), "{}", filters.error().message);
  std::string text;
  std::vector<Candidate> left;
  for (int step = 0; step < 2000; ++step) {
    std::vector<float> logits;
    for (int id = 0; id < TinyTokenizer().VocabSize(); ++id) {
      const TokenId token{id};
      const std::string piece = TinyTokenizer().Piece(token);
      const bool closes =
          TinyTokenizer().IsEndOfGeneration(token) ||
          (piece.size() == 1 && std::string_view("\"}],:").find(piece) != std::string_view::npos);
      const bool is_exponent = piece == "e" || piece == "E";  // 1E999 is JSON, but no double
      logits.push_back((is_exponent ? -100.0f : 3 * rng.Normal()) +
                       (closes ? 0.1f * static_cast<float>(step) : 0.0f));
    }
    (*filters)->Apply(logits, left);
    VC_CHECK(!left.empty(), "a dead end behind {}", text);
    const TokenId token = std::ranges::max_element(left, {}, &Candidate::logit)->id;
    if (TinyTokenizer().IsEndOfGeneration(token)) return text;
    (*filters)->Accept(token);
    text += TinyTokenizer().Piece(token);
  }
  ADD_FAILURE() << "no end to " << text;
  return text;
}

struct SchemaCase {
  std::string schema;
  std::function<bool(const Json&)> holds;
};

const std::vector<SchemaCase>& Cases() {
  static const std::vector<SchemaCase> cases = {
      {R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},
           "age": {"type": "integer", "minimum": 0, "maximum": 150}},
           "required": ["name", "age"], "additionalProperties": false})",
       [](const Json& j) {
         return j.size() == 2 && j["name"].is_string() && j["age"].is_number_integer() &&
                j["age"] >= 0 && j["age"] <= 150;
       }},
      {R"({"type": "array", "items": {"enum": ["red", "green", 3]}, "minItems": 2, "maxItems": 4})",
       [](const Json& j) {
         return j.size() >= 2 && j.size() <= 4 &&
                std::all_of(j.begin(), j.end(),
                            [](const Json& x) { return x == "red" || x == "green" || x == 3; });
       }},
      {R"({"oneOf": [{"type": "null"}, {"type": "boolean"}, {"const": {"a": [1]}}]})",
       [](const Json& j) {
         return j.is_null() || j.is_boolean() || j == Json{{"a", Json::array({1})}};
       }},
      {R"({"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"],
           "$defs": {"node": {"type": "object", "properties": {"v": {"type": "number"}},
           "required": ["v"]}}})",
       [](const Json& j) { return j["next"]["v"].is_number(); }},
      {"{}", [](const Json&) { return true; }}};
  return cases;
}

PROPERTY(JsonSchema, WhateverTheLogitsSayTheTextIsOfTheSchema, 30) {
  for (const SchemaCase& c : Cases()) {
    const auto grammar = GrammarFromJsonSchema(c.schema);
    ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
    const std::string text = Walk(*grammar, rng);
    const Json parsed = Json::parse(text, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << c.schema << " gave " << text;
    EXPECT_TRUE(c.holds(parsed)) << c.schema << " gave " << text;
  }
}

std::string Repeated(const std::string& text, int n) {
  std::string result;
  for (int i = 0; i < n; ++i) result += text;
  return result;
}

TEST(JsonSchema, WhatIsNoSchemaIsRefusedWithTheReason) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "JSON schema is wrong"},
      {"{", "JSON schema is wrong"},
      {"{} x", "JSON schema is wrong"},
      {R"({"type": "strin"})", "strin"},
      {R"({"type": 5})", "type"},
      {R"({"$ref": "#/$defs/missing"})", "missing"},
      {R"({"$ref": "https://example.com/schema.json"})", "example.com"},
      {R"({"type": "string", "pattern": "^(a$"})", "(a"},
      {R"({"type": "string", "pattern": "^+[a-z]$"})", "+[a-z]"},
      {R"({"type": "string", "pattern": "^{2}x$"})", "{2}x"},
      {R"({"type": "string", "minLength": -1})", "minLength"},
      {Repeated(R"({"items":)", 10000) + "{}" + std::string(10000, '}'), "nested 10001 deep"},
      {R"({"description": ")" + std::string(200000, 'x') + "\"}", "bytes"},
  };
  for (const auto& [schema, says] : cases) {
    const auto grammar = GrammarFromJsonSchema(schema);
    ASSERT_FALSE(grammar.has_value()) << schema.substr(0, 100);
    EXPECT_THAT(grammar.error().message, HasSubstr(says));
    EXPECT_EQ(grammar.error().message.find('\n'), std::string::npos);
  }
}

TEST(JsonSchema, BracketsInTextAreNoNesting) {
  std::string text = R"({"const": ")";
  text.append(500, '[').append(R"(\"{{{"})");
  const auto grammar = GrammarFromJsonSchema(text);
  EXPECT_TRUE(grammar.has_value());
}

}  // namespace
}  // namespace vericache::model
