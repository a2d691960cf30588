// Goal: whole characters leave at once, cut ones are held, ill-formed ones are replaced by
// maximal subparts, and nothing is held that can no longer become a character (T4, T5, T6).
// Method: the tables of the Unicode standard, in one piece and byte by byte; random bytes
// against themselves, cut at random.

#include "decode/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace vericache::decode {
namespace {

std::string WholeText(std::string_view bytes) {
  Utf8Joiner joiner;
  std::string out;
  joiner.Push(bytes, out);
  joiner.Flush(out);
  return out;
}

std::string ByteByByte(std::string_view bytes) {
  Utf8Joiner joiner;
  std::string out;
  for (const char c : bytes) joiner.Push(std::string_view(&c, 1), out);
  joiner.Flush(out);
  return out;
}

const std::string kFffd(kReplacement);

std::string Replacements(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += kFffd;
  return text;
}

TEST(Utf8, ReplacesMaximalSubparts) {
  const std::pair<std::string, std::string> cases[] = {
      {"\xED\xA0\x80", Replacements(3)},            // a surrogate
      {"\xF0\x80\x80\x41", Replacements(3) + "A"},  // overlong
      {"\xE2\x80\x41", Replacements(1) + "A"},      // truncated
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", Replacements(4) + "A"},
      {"\xC0\xAF", Replacements(2)},
      {"\xF4\x90\x80\x80", Replacements(4)},  // beyond U+10FFFF
      {"\xF5\xFF\xFE", Replacements(3)},
      {"\x80\x80text", Replacements(2) + "text"},
      {"\xC3", Replacements(1)},
      {"\xF0\x9F\xA4", Replacements(1)},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(WholeText(bytes), text);
    EXPECT_EQ(ByteByByte(bytes), text);
  }
}

TEST(Utf8, JoinsCharactersCutAnywhere) {
  for (const std::string text :
       {"🤗", "👩‍👩‍👧‍👦", "한국어", "日本語", "é\n\0x"}) {
    EXPECT_EQ(WholeText(text), text);
    EXPECT_EQ(ByteByByte(text), text);
  }
}

TEST(Utf8, HoldsACutCharacterUntilItIsWhole) {
  Utf8Joiner joiner;
  std::string out;
  joiner.Push("a\xF0\x9F", out);
  EXPECT_EQ(out, "a");
  joiner.Push("\xA4", out);
  EXPECT_EQ(out, "a");
  joiner.Push("\x97z", out);
  EXPECT_EQ(out, "a🤗z");
}

TEST(Utf8, NeverHoldsWhatCannotBecomeACharacter) {
  Utf8Joiner joiner;
  std::string out;
  for (int i = 1; i <= 100; ++i) {
    joiner.Push("\x80", out);
    ASSERT_EQ(out, Replacements(i));
  }
  out.clear();
  joiner.Push("\xED", out);
  joiner.Push("\xA0", out);  // rules out the character: both bytes are decided
  EXPECT_EQ(out, Replacements(2));
}

TEST(Utf8, IsValidAndTheSameHoweverItIsCut) {
  std::mt19937_64 random(4);
  const std::string alphabet = "a\x80\x9F\xA0\xBF\xC2\xE0\xE2\xED\xEF\xF0\xF4\xF5";
  for (int trial = 0; trial < 5000; ++trial) {
    std::string bytes;
    for (int i = 0; i < 12; ++i) bytes += alphabet[random() % alphabet.size()];
    const std::string text = WholeText(bytes);
    ASSERT_TRUE(IsUtf8(text));
    ASSERT_EQ(ByteByByte(bytes), text);
    ASSERT_EQ(IsUtf8(bytes), bytes == text);
  }
}

}  // namespace
}  // namespace vericache::decode
