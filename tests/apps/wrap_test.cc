// Goal: no line is wider than asked, and the text stays what it is.
// Method: cases by hand; a property with random words.

#include "apps/wrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/property.h"

namespace vericache::apps {
namespace {

TEST(Wrap, BreaksAtBlanks) {
  EXPECT_EQ(Wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(Wrapped("one two three", 6), "one\ntwo\nthree");
  EXPECT_EQ(Wrapped("one two three", 13), "one two three");
  EXPECT_EQ(Wrapped("", 5), "");
}

TEST(Wrap, KeepsLineEndsAndWordsThatAreWider) {
  EXPECT_EQ(Wrapped("a b\nc  d\n", 3), "a b\nc \nd\n");
  EXPECT_EQ(Wrapped("a enormous b", 4), "a\nenormous\nb");
}

TEST(Wrap, KeepsADefaultWhole) {
  EXPECT_EQ(Wrapped("sets N (default: 0)", 16), "sets N\n(default: 0)");
}

PROPERTY(Wrap, ChangesBlanksIntoLineEndsOnly, 300) {
  std::string text;
  for (int i = rng.In(0, 40); i > 0; --i) {
    text += std::string(static_cast<size_t>(rng.In(1, 9)), 'x');
    text += rng.Chance(0.1) ? '\n' : ' ';
  }
  const auto width = static_cast<size_t>(rng.In(9, 40));
  std::string wrapped = Wrapped(text, width);
  std::istringstream lines(wrapped);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width);
  std::replace(wrapped.begin(), wrapped.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\n', ' ');
  EXPECT_EQ(wrapped, text);
}

}  // namespace
}  // namespace vericache::apps
