// Goal: texts are cut where nothing is lost: at the end of valid UTF-8, and inside stretches too
// long for libllama.
// Method: the table of the Unicode standard's edges; every cut of a text with long stretches.

#include "model/text_cuts.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/property.h"

namespace vericache::model {
namespace {

TEST(TextCuts, KnowsValidUtf8) {
  const auto valid = [](std::string_view text) { return ValidUtf8Prefix(text); };
  EXPECT_EQ(valid(""), 0u);
  for (const std::string text :
       {"plain", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(valid(text), text.size());
    for (size_t n = 1; n < text.size() && text[0] != 'p'; ++n)
      EXPECT_EQ(valid(text.substr(0, n)), 0u) << n;
  }
  EXPECT_EQ(valid(std::string("a\0b", 3)), 3u);
  for (const char* text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
        "\xe2\x80"
        "A"}) {
    EXPECT_EQ(valid(text), 0u);
    EXPECT_EQ(valid(std::string("ok") + text), 2u);
  }
}

TEST(TextCuts, LeavesOrdinaryTextWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "words of ordinary length,\n";
  EXPECT_EQ(EndOfLongStretch(text, 20), text.size());
  EXPECT_EQ(EndOfLongStretch("", 20), 0u);
}

TEST(TextCuts, CutsLongStretchesBetweenCharacters) {
  EXPECT_EQ(EndOfLongStretch("aaaaa", 5), 5u);
  EXPECT_EQ(EndOfLongStretch("aaaaaa", 5), 5u);
  EXPECT_EQ(EndOfLongStretch("ab      cd", 5), 7u);
  EXPECT_EQ(EndOfLongStretch("\xe4\xb8\x80\xe4\xb8\x80\xe4\xb8\x80", 2), 6u);
}

TEST(TextCuts, FindsCharacterBoundaries) {
  const std::string text = "a\xe4\xb8\x80z";
  EXPECT_EQ(CharacterBoundary(text, 0), 0u);
  EXPECT_EQ(CharacterBoundary(text, 1), 1u);
  EXPECT_EQ(CharacterBoundary(text, 2), 4u);
  EXPECT_EQ(CharacterBoundary(text, 3), 4u);
  EXPECT_EQ(CharacterBoundary(text, 9), 5u);
}

PROPERTY(TextCuts, CoverTheTextInValidPieces, 200) {
  std::string text;
  const int n = rng.In(0, 200);
  for (int i = 0; i < n; ++i)
    text += rng.OneOf<const char*>({"a", " ", "\n", "\xc3\xa9", "\xf0\x9f\xa4\x97"});
  const auto max = static_cast<size_t>(rng.In(1, 20));
  std::string_view left = text;
  while (!left.empty()) {
    const size_t n_bytes = EndOfLongStretch(left, max);
    ASSERT_GT(n_bytes, 0u);
    ASSERT_EQ(ValidUtf8Prefix(left.substr(0, n_bytes)), n_bytes);
    left.remove_prefix(n_bytes);
  }
}

}  // namespace
}  // namespace vericache::model
