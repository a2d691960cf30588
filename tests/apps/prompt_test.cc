// Goal: what editors and other systems put into text files neither reaches the model nor stops the
// user; what is no text is refused with its place.
#include "apps/prompt.h"

#include <gtest/gtest.h>

namespace vericache::apps {
namespace {

TEST(Cleaned, DropsTheByteOrderMarkAtTheStartOnly) {
  EXPECT_EQ(Cleaned("\xef\xbb\xbftext"), "text");
  EXPECT_EQ(Cleaned("a\xef\xbb\xbf"), "a\xef\xbb\xbf");
  EXPECT_EQ(Cleaned("\xef\xbb\xbf"), "");
}

TEST(Cleaned, TurnsCrLfIntoLfAndKeepsLoneCarriageReturns) {
  EXPECT_EQ(Cleaned("a\r\nb\r\n"), "a\nb\n");
  EXPECT_EQ(Cleaned("a\rb\r"), "a\rb\r");
  EXPECT_EQ(Cleaned("\r\r\n"), "\r\n");
}

TEST(FirstInvalidUtf8, PassesWellFormedText) {
  for (const char* text :
       {"", "plain", "gr\xc3\xbc\xc3\x9f", "\xe6\xbc\xa2\xe5\xad\x97", "\xf0\x9f\x99\x82"}) {
    EXPECT_EQ(FirstInvalidUtf8(text), std::nullopt) << text;
  }
}

TEST(FirstInvalidUtf8, NamesTheByteWhereItBreaks) {
  EXPECT_EQ(FirstInvalidUtf8("ab\xff"), 2u);
  EXPECT_EQ(FirstInvalidUtf8("\xc3\xbc\xc3"), 2u);        // cut
  EXPECT_EQ(FirstInvalidUtf8("x\xc0\x80"), 1u);           // overlong
  EXPECT_EQ(FirstInvalidUtf8("\xed\xa0\x80"), 0u);        // surrogate
  EXPECT_EQ(FirstInvalidUtf8("ab\xf4\x90\x80\x80"), 2u);  // beyond U+10FFFF
  EXPECT_EQ(FirstInvalidUtf8("\x80"), 0u);                // continuation alone
  EXPECT_EQ(FirstInvalidUtf8("\xe6\xbc\xa2\xe5\xad"
                             "a"),
            3u);  // broken off
}

}  // namespace
}  // namespace vericache::apps
