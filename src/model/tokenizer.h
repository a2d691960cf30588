// Text to token ids and back, by libllama (vocab only). User text never becomes control tokens:
// special parsing is a separate, explicit call. Threads: const members are re-entrant.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

struct llama_vocab;

namespace vericache::model {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  static Result<std::unique_ptr<Tokenizer>> Load(const std::string& gguf_path);

  // Plain text: "<|im_end|>" stays nine characters of text. No BOS.
  virtual std::vector<TokenId> Encode(std::string_view text) const = 0;
  // Template text: control tokens are recognised.
  virtual std::vector<TokenId> EncodeWithControl(std::string_view text) const = 0;
  // The bytes of one token; control tokens give "".
  virtual std::string Piece(TokenId token) const = 0;
  virtual bool IsEndOfGeneration(TokenId token) const = 0;
  virtual TokenId Bos() const = 0;  // -1 if the vocabulary has none or does not want one
  virtual int VocabSize() const = 0;
  // For libllama's own functions on it. Null in a tokenizer that is not libllama's.
  virtual const llama_vocab* Vocab() const = 0;
};

}  // namespace vericache::model
