#include "model/text_cuts.h"

#include <algorithm>
#include <cstdint>

namespace vericache::model {
namespace {

uint8_t ByteAt(std::string_view text, size_t i) {
  return i < text.size() ? static_cast<uint8_t>(text[i]) : 0;
}
bool IsContinuation(uint8_t byte) { return (byte & 0xc0u) == 0x80u; }
bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Bytes of the character at `i`, 0 if it is not valid. Ranges of the second byte: Unicode 15, table
// 3-7.
size_t CharacterBytes(std::string_view text, size_t i) {
  const uint8_t lead = ByteAt(text, i);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size_t n_bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const uint8_t second = ByteAt(text, i + 1);
  const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  for (size_t k = 2; k < n_bytes; ++k) {
    if (!IsContinuation(ByteAt(text, i + k))) return 0;
  }
  return n_bytes;
}

}  // namespace

size_t ValidUtf8Prefix(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const size_t n_bytes = CharacterBytes(text, i);
    if (n_bytes == 0) break;
    i += n_bytes;
  }
  return i;
}

size_t EndOfLongStretch(std::string_view text, size_t max_characters) {
  size_t n_characters = 0;
  bool was_space = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsContinuation(static_cast<uint8_t>(text[i]))) continue;
    const bool is_space = IsSpace(text[i]);
    if (is_space != was_space) n_characters = 0;
    was_space = is_space;
    if (++n_characters > max_characters) return i;
  }
  return text.size();
}

size_t CharacterBoundary(std::string_view text, size_t offset) {
  size_t i = std::min(offset, text.size());
  while (i < text.size() && IsContinuation(static_cast<uint8_t>(text[i]))) ++i;
  return i;
}

}  // namespace vericache::model
