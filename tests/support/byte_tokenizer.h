// A tokenizer without a model file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer.h"

namespace vericache::testing_support {

// Tokens are bytes; `eos` ends a generation and has no text.
class ByteTokenizer final : public model::Tokenizer {
 public:
  ByteTokenizer(int n_vocab, int eos) : n_vocab_(n_vocab), eos_(eos) {}
  std::vector<TokenId> Encode(std::string_view text) const override {
    std::vector<TokenId> tokens;
    for (const char c : text) tokens.emplace_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::vector<TokenId> EncodeWithControl(std::string_view text) const override {
    return Encode(text);
  }
  std::string Piece(TokenId token) const override {
    if (token.value == eos_ || token.value > 255) return "";
    return std::string(1, static_cast<char>(token.value));
  }
  bool IsEndOfGeneration(TokenId token) const override { return token.value == eos_; }
  TokenId Bos() const override { return TokenId{-1}; }
  int VocabSize() const override { return n_vocab_; }
  const llama_vocab* Vocab() const override { return nullptr; }

 private:
  int n_vocab_;
  int eos_;
};

}  // namespace vericache::testing_support
