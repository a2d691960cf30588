// The vocabulary of the tiny model: 256 bytes, control tokens, and pairs with their merges, so that
// text takes the same way as in a real byte-level BPE tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vericache::model {

inline constexpr int kTinyEndOfText = 256;
inline constexpr int kTinyTurnStart = 257;
inline constexpr int kTinyTurnEnd = 258;
inline constexpr int kTinyPad = 259;
inline constexpr int kTinyMinVocab = 260;

struct TinyVocab {
  std::vector<std::string> tokens;  // as GGUF spells them: a byte is a printable character
  std::vector<int32_t> types;       // 1 normal, 3 control, 5 unused
  std::vector<std::string> merges;  // "a b"
};

// Requires: n_vocab >= kTinyMinVocab.
TinyVocab MakeTinyVocab(int n_vocab);

// ChatML, as SmolLM2 and Qwen2 use it.
extern const char kTinyChatTemplate[];

}  // namespace vericache::model
