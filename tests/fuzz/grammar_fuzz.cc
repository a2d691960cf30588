// A GBNF grammar is refused, or says of every token whether it may come next.
#include <llama.h>

#include "base/check.h"
#include "model/grammar.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/tiny_tokenizer.h"

namespace vericache::fuzz {
namespace {

constexpr int kSteps = 6;

}  // namespace

bool RunOne(std::span<const uint8_t> input) {
  auto grammar = model::Grammar::Parse(std::string(AsText(input)), TinyTokenizer());
  if (!grammar) {
    VC_CHECK(!grammar.error().message.empty());
    return false;
  }
  for (int step = 0; step < kSteps; ++step) {
    std::vector<llama_token_data> candidates;
    for (int id = 0; id < TinyTokenizer().VocabSize(); ++id) candidates.push_back({id, 1.0f, 0.0f});
    grammar->Forbid(candidates);
    const auto allowed = std::find_if(candidates.begin(), candidates.end(),
                                      [](const auto& token) { return token.logit > 0; });
    if (allowed == candidates.end()) return true;
    const TokenId token{allowed->id};
    if (TinyTokenizer().IsEndOfGeneration(token)) return true;
    grammar->Accept(token);
  }
  return true;
}

std::vector<std::string> Seeds() {
  return {"root ::= \"yes\" | \"no\" [0-9]{1,3}", "root ::= item (\",\" item)*\nitem ::= [^,]+\n",
          "root ::= a\na ::= \"(\" a \")\" | \"\"\n", "root ::= .* # any\n"};
}

}  // namespace vericache::fuzz
