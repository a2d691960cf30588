// Random texts that tokenizers stumble over: every plane of Unicode, odd spaces, marks, and plain
// bytes.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/property.h"

namespace vericache::testing_support {

inline std::string Utf8Of(uint32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80u | (c >> shift & 0x3fu)); };
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  if (c < 0x800) return {static_cast<char>(0xc0u | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0u | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0u | c >> 18), tail(12), tail(6), tail(0)};
}

// Valid Unicode, NUL, byte-order marks, line separators, Devanagari and right-to-left text
// included.
inline std::string RandomUnicode(Rng& rng, int n_characters) {
  struct Span {
    int low;
    int high;
  };
  std::string text;
  while (n_characters-- > 0) {
    const Span span = rng.OneOf<Span>({{' ', '~'},
                                       {' ', '~'},
                                       {'a', 'z'},
                                       {0, 31},
                                       {0x80, 0x7ff},
                                       {0x900, 0x97f},
                                       {0x590, 0x6ff},
                                       {0x2000, 0x206f},
                                       {0x300, 0x36f},
                                       {0x4e00, 0x9fff},
                                       {0xfeff, 0xfeff},
                                       {0xe000, 0xffff},
                                       {0x1f300, 0x1faff},
                                       {0x10000, 0x10ffff}});
    text += Utf8Of(static_cast<uint32_t>(rng.In(span.low, span.high)));
  }
  return text;
}

inline std::string RandomBytes(Rng& rng, int n_bytes) {
  std::string text;
  while (n_bytes-- > 0)
    text += static_cast<char>(rng.Chance(0.5) ? rng.In(0, 255) : rng.In(' ', '~'));
  return text;
}

}  // namespace vericache::testing_support
