// Goal: the text ends before the first stop string, nothing of it is ever shown, what only
// looked like one is released, and none of this depends on how tokens cut the text.
// Method: examples (H1, H2); random texts over a small alphabet against a search by definition,
// cut in random pieces.

#include "decode/text_stream.h"

#include <gtest/gtest.h>

#include <random>

namespace vericache::decode {
namespace {

struct Shown {
  std::string text;
  bool found = false;
};

Shown ShowAll(const std::vector<std::string>& stop, const std::vector<std::string>& pieces) {
  TextStream stream(stop);
  Shown shown;
  for (const std::string& piece : pieces) {
    shown.text += stream.Push(piece);
    if (stream.FoundStop()) return {shown.text, true};
  }
  shown.text += stream.Finish();
  return {shown.text, stream.FoundStop()};
}

TEST(TextStream, FindsAStopStringOverSeveralTokens) {
  const Shown shown = ShowAll({"O P Q"}, {"A B", " N ", "O", " P", " Q", " R"});
  EXPECT_EQ(shown.text, "A B N ");
  EXPECT_TRUE(shown.found);
}

TEST(TextStream, WithholdsWhatMayBegin) {
  TextStream stream({"own fox", "\n\nUser:"});
  EXPECT_EQ(stream.Push("the br"), "the br");
  EXPECT_EQ(stream.Push("own f"), "");
  EXPECT_EQ(stream.Push("a"), "own fa");
  EXPECT_EQ(stream.Push("\n"), "");
  EXPECT_EQ(stream.Push("\n"), "");
  EXPECT_EQ(stream.Push("\n"), "\n");  // the last two may still begin one
  EXPECT_EQ(stream.Push("User"), "");
  EXPECT_EQ(stream.Finish(), "\n\nUser");
}

TEST(TextStream, ShowsNothingOfTheStopStringNorAfterIt) {
  const Shown shown = ShowAll({"END"}, {"one END two"});
  EXPECT_EQ(shown.text, "one ");
  EXPECT_TRUE(shown.found);
}

TEST(TextStream, TheFirstCompleteOneEndsTheText) {
  EXPECT_EQ(ShowAll({"abcd", "bc"}, {"xabcd"}).text, "xa");
  EXPECT_EQ(ShowAll({"abcd", "bc"}, {"x", "a", "b", "c", "d"}).text, "xa");
  EXPECT_EQ(ShowAll({"c", "abc"}, {"xabc"}).text, "x");  // both complete at once: the longest
}

TEST(TextStream, ReleasesEverythingWithoutStopStrings) {
  TextStream stream({});
  EXPECT_EQ(stream.Push("abc"), "abc");
  EXPECT_EQ(stream.Push(""), "");
  EXPECT_EQ(stream.Push("\xE2\x82"), "");
  EXPECT_EQ(stream.Push("\xAC"), "€");
  EXPECT_EQ(stream.Push("\xE2"), "");
  EXPECT_EQ(stream.Finish(), "\xEF\xBF\xBD");
}

TEST(TextStream, StopStringsMayHoldLongCharacters) {
  const Shown shown = ShowAll({"語!"}, {"日本\xE8", "\xAA", "\x9E", "!", "x"});
  EXPECT_EQ(shown.text, "日本");
  EXPECT_TRUE(shown.found);
}

// The definition: the first byte at which some stop string ends; the longest of them is cut off.
Shown Expected(const std::vector<std::string>& stop, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& s : stop) {
      if (std::string_view(text).substr(0, end).ends_with(s)) longest = std::max(longest, s.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(TextStream, DoesNotDependOnHowTokensCutTheText) {
  std::mt19937_64 random(5);
  const auto word = [&](size_t n) {
    std::string text;
    for (size_t i = 0; i < n; ++i) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  int n_found = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    std::vector<std::string> stop;
    for (size_t i = 0; i < 1 + random() % 3; ++i) stop.push_back(word(1 + random() % 6));
    const std::string text = word(random() % 30);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t n = random() % 5;
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    const Shown expected = Expected(stop, text);
    const Shown shown = ShowAll(stop, pieces);
    ASSERT_EQ(shown.text, expected.text) << text;
    ASSERT_EQ(shown.found, expected.found) << text;
    n_found += shown.found ? 1 : 0;
  }
  EXPECT_GT(n_found, 1000);
  EXPECT_LT(n_found, 4900);
}

}  // namespace
}  // namespace vericache::decode
