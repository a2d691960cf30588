// A JSON schema is refused, or gives a grammar that is itself refused or works.
#include "base/check.h"
#include "model/grammar.h"
#include "model/json_schema.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/tiny_tokenizer.h"

namespace vericache::fuzz {

bool RunOne(std::span<const uint8_t> input) {
  const auto gbnf = model::GrammarFromJsonSchema(AsText(input));
  if (!gbnf) {
    VC_CHECK(!gbnf.error().message.empty());
    return false;
  }
  const auto grammar = model::Grammar::Parse(*gbnf, TinyTokenizer());
  VC_CHECK(grammar.has_value() || !grammar.error().message.empty());
  return grammar.has_value();
}

std::vector<std::string> Seeds() {
  return {R"({"type":"object","properties":{"a":{"type":"integer","minimum":3,"maximum":90}},)"
          R"("required":["a"],"additionalProperties":false})",
          R"({"type":"array","items":{"enum":["x",1,null]},"minItems":1,"maxItems":4})",
          R"({"$ref":"#/$defs/n","$defs":{"n":{"anyOf":[{"type":"null"},)"
          R"({"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}]}}})",
          R"({"type":"string","pattern":"^[a-c]{2,5}(x|y)*$","maxLength":9})"};
}

}  // namespace vericache::fuzz
