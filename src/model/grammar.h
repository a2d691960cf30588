// Answers that a GBNF grammar allows: which tokens may come next, by libllama's grammar engine.
//
// The grammar speaks of the answer's text alone. So a control token, which has no text, is never
// allowed, except that an end-of-generation token is where the text may end. And the text is UTF-8:
// libllama would read an overlong encoding of a quote as a quote.
// Threads: an object is used by one thread at a time. Source: GBNF as llama.cpp describes it
// (grammars/README.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/tokenizer.h"

struct llama_grammar;
struct llama_token_data;

namespace vericache::model {

class Grammar {
 public:
  // The grammar's answers start at its rule "root". The tokenizer must outlive it.
  // Errors: kInvalidArgument, with line and column where libllama names them; kUnsupported for what
  //         libllama would take too long or too much stack for, and for grammars over token ids.
  static Result<Grammar> Parse(const std::string& gbnf, const Tokenizer& tokenizer);

  Grammar Clone() const;
  // Gives the logit -infinity to every candidate that may not come next.
  void Forbid(std::span<llama_token_data> candidates);
  // `token` is the answer's next one. Requires: Forbid would leave it.
  void Accept(TokenId token);

 private:
  struct Deleter {
    void operator()(llama_grammar* grammar) const;
  };
  using State = std::unique_ptr<llama_grammar, Deleter>;
  // Of each token's text; see grammar.cc.
  using FirstCharacters = std::shared_ptr<const std::vector<int32_t>>;

  Grammar(State state, const Tokenizer* tokenizer, FirstCharacters first)
      : state_(std::move(state)), tokenizer_(tokenizer), first_(std::move(first)) {}
  bool MayStartWith(uint32_t character) const;
  // Indices of those that their first character does not rule out.
  std::vector<size_t> PlausibleOf(std::span<const llama_token_data> candidates) const;
  bool IsText(TokenId token) const;

  State state_;  // null: nothing may follow
  const Tokenizer* tokenizer_;
  FirstCharacters first_;
  std::string begun_;  // bytes of a character that the last token left incomplete
};

}  // namespace vericache::model
