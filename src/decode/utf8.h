// UTF-8 from tokens that may cut a character, or hold bytes that are none.
//
// Text leaves the engine valid: each maximal subpart of an ill-formed sequence becomes one U+FFFD
// (Unicode 15, section 3.9, D93b and table 3-8), as in every browser. Bytes that may still become a
// character are held until the next ones decide; bytes that no longer can are never held.
// Threads: an object is used by one thread at a time.
#pragma once

#include <string>
#include <string_view>

namespace vericache::decode {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

class Utf8Joiner {
 public:
  // Appends to `out` the text that `bytes` completes.
  void Push(std::string_view bytes, std::string& out);
  // The end: a held part is replaced.
  void Flush(std::string& out);

 private:
  void PushByte(unsigned char byte, std::string& out);

  std::string held_;          // a proper prefix of a character
  int n_missing_ = 0;         // bytes until it is whole
  unsigned char low_ = 0x80;  // range of the next byte
  unsigned char high_ = 0xBF;
};

bool IsUtf8(std::string_view text);

}  // namespace vericache::decode
