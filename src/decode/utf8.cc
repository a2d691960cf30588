#include "decode/utf8.h"

namespace vericache::decode {

void Utf8Joiner::Push(std::string_view bytes, std::string& out) {
  for (const char c : bytes) PushByte(static_cast<unsigned char>(c), out);
}

void Utf8Joiner::Flush(std::string& out) {
  if (!held_.empty()) out += kReplacement;
  held_.clear();
  n_missing_ = 0;
}

void Utf8Joiner::PushByte(unsigned char byte, std::string& out) {
  if (n_missing_ > 0) {
    if (byte >= low_ && byte <= high_) {
      held_ += static_cast<char>(byte);
      low_ = 0x80;
      high_ = 0xBF;
      if (--n_missing_ == 0) {
        out += held_;
        held_.clear();
      }
      return;
    }
    Flush(out);  // what was held is a maximal subpart; the byte starts anew
  }
  if (byte < 0x80) {
    out += static_cast<char>(byte);
    return;
  }
  // Table 3-7: which second byte may follow depends on the first.
  low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
  high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
  if (byte >= 0xC2 && byte <= 0xDF) {
    n_missing_ = 1;
  } else if (byte >= 0xE0 && byte <= 0xEF) {
    n_missing_ = 2;
  } else if (byte >= 0xF0 && byte <= 0xF4) {
    n_missing_ = 3;
  } else {
    out += kReplacement;
    return;
  }
  held_ = static_cast<char>(byte);
}

bool IsUtf8(std::string_view text) {
  Utf8Joiner joiner;
  std::string out;
  joiner.Push(text, out);
  joiner.Flush(out);
  return out == text;  // a replacement changes the text: U+FFFD itself is three bytes, each subpart
                       // fewer or others
}

}  // namespace vericache::decode
