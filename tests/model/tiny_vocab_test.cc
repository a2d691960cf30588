// Goal: a vocabulary with every byte, the control tokens and merges that make its other tokens.
// Method: its parts are put together again.

#include "model/tiny_vocab.h"

#include <gtest/gtest.h>

#include <set>

namespace vericache::model {
namespace {

TEST(TinyVocab, HasTheSizeAskedForAndNoTokenTwice) {
  for (const int n : {kTinyMinVocab, kTinyMinVocab + 1, 320, 3000, 4000}) {
    const TinyVocab vocab = MakeTinyVocab(n);
    EXPECT_EQ(vocab.tokens.size(), static_cast<size_t>(n));
    EXPECT_EQ(vocab.types.size(), static_cast<size_t>(n));
    EXPECT_EQ(std::set<std::string>(vocab.tokens.begin(), vocab.tokens.end()).size(),
              static_cast<size_t>(n));
  }
}

TEST(TinyVocab, SpellsBytesAsGpt2Does) {
  const TinyVocab vocab = MakeTinyVocab(kTinyMinVocab);
  EXPECT_EQ(vocab.tokens['A'], "A");
  EXPECT_EQ(vocab.tokens[' '], "\xc4\xa0");   // U+0120
  EXPECT_EQ(vocab.tokens['\n'], "\xc4\x8a");  // U+010A
  EXPECT_EQ(vocab.tokens[0], "\xc4\x80");     // U+0100
  EXPECT_EQ(vocab.tokens[0xad], "\xc5\x83");  // U+0143, the last one
  EXPECT_EQ(vocab.tokens[0xff], "\xc3\xbf");
  EXPECT_EQ(vocab.tokens[kTinyTurnEnd], "<|im_end|>");
  EXPECT_EQ(vocab.types[kTinyTurnEnd], 3);
}

TEST(TinyVocab, EveryMergeMakesATokenFromTokens) {
  const TinyVocab vocab = MakeTinyVocab(3000);
  const std::set<std::string> tokens(vocab.tokens.begin(), vocab.tokens.end());
  EXPECT_GT(vocab.merges.size(), 2000u);
  for (const std::string& merge : vocab.merges) {
    const size_t space = merge.find(' ');
    const std::string first = merge.substr(0, space);
    const std::string second = merge.substr(space + 1);
    EXPECT_TRUE(tokens.contains(first) && tokens.contains(second) &&
                tokens.contains(first + second))
        << merge;
  }
}

}  // namespace
}  // namespace vericache::model
