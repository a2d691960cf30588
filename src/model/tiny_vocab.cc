#include "model/tiny_vocab.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

namespace vericache::model {
namespace {

constexpr int32_t kNormal = 1;
constexpr int32_t kControl = 3;
constexpr int32_t kUnused = 5;
constexpr uint32_t kFirstSubstitute = 256;  // code point of the first byte that is not printable

std::string Utf8(uint32_t code_point) {  // below 0x800
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0u | code_point >> 6),
          static_cast<char>(0x80u | (code_point & 0x3fu))};
}

bool IsPrintable(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// GPT-2's spelling: printable bytes stand for themselves, the others for the code points from 256
// on, in order.
std::vector<std::string> ByteSpellings() {
  std::vector<std::string> spellings;
  uint32_t substitute = kFirstSubstitute;
  for (uint32_t byte = 0; byte < 256; ++byte)
    spellings.push_back(Utf8(IsPrintable(byte) ? byte : substitute++));
  return spellings;
}

// What English merges first, then every pair of letters. A '_' stands for a space.
std::vector<std::pair<std::string, std::string>> MergePairs() {
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"_", "t"},   {"h", "e"},  {"_", "a"}, {"i", "n"}, {"r", "e"},  {"o", "n"},
      {"_t", "he"}, {"e", "r"},  {"_", "s"}, {"a", "t"}, {"_", "w"},  {"_", "o"},
      {"e", "n"},   {"_", "c"},  {"i", "t"}, {"i", "s"}, {"a", "n"},  {"o", "r"},
      {"e", "s"},   {"_", "b"},  {"e", "d"}, {"_", "f"}, {"in", "g"}, {"_", "p"},
      {"o", "u"},   {"_a", "n"}, {"a", "l"}, {"a", "r"}, {"_", "m"},  {"_an", "d"}};
  const std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (const char first : letters) {
    for (const char second : letters)
      pairs.emplace_back(std::string(1, first), std::string(1, second));
  }
  return pairs;
}

std::string Spell(std::string_view text, const std::string& space) {
  std::string out;
  for (const char c : text) out += c == '_' ? space : std::string(1, c);
  return out;
}

}  // namespace

TinyVocab MakeTinyVocab(int n_vocab) {
  TinyVocab vocab;
  vocab.tokens = ByteSpellings();
  vocab.types.assign(vocab.tokens.size(), kNormal);
  const std::string space = vocab.tokens[' '];
  for (const char* control : {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"}) {
    vocab.tokens.emplace_back(control);
    vocab.types.push_back(kControl);
  }
  const auto n_tokens = static_cast<size_t>(n_vocab);
  std::set<std::string> seen(vocab.tokens.begin(), vocab.tokens.end());
  for (const auto& [first, second] : MergePairs()) {
    if (vocab.tokens.size() == n_tokens) break;
    std::string token = Spell(first + second, space);
    if (!seen.insert(token).second) continue;
    vocab.merges.push_back(Spell(first, space) + " " + Spell(second, space));
    vocab.tokens.push_back(std::move(token));
    vocab.types.push_back(kNormal);
  }
  while (vocab.tokens.size() < n_tokens) {
    vocab.tokens.push_back(fmt::format("<|unused_{}|>", vocab.tokens.size()));
    vocab.types.push_back(kUnused);
  }
  return vocab;
}

const char kTinyChatTemplate[] =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

}  // namespace vericache::model
