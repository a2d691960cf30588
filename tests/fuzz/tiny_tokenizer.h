// The tiny model's tokenizer, loaded once.
#pragma once

#include <memory>
#include <utility>

#include "model/tokenizer.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::fuzz {

inline const model::Tokenizer& TinyTokenizer() {
  static const std::unique_ptr<model::Tokenizer> tokenizer = std::move(
      *model::Tokenizer::Load(testing_support::TinyModelFile(model::TinyModelSpec{}).Path()));
  return *tokenizer;
}

}  // namespace vericache::fuzz
