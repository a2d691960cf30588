// Goal: thinking at the start of an answer is dimmed and nothing else is; the text itself comes
// through whole however it is cut into pieces.
// Method: answers with the tags in every place, every cut in two; a property with random pieces.

#include "apps/thinking.h"

#include <gtest/gtest.h>

#include "tests/support/byte_tokenizer.h"
#include "tests/support/property.h"

namespace vericache::apps {
namespace {

constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";

std::string Styled(const std::vector<std::string>& pieces, bool is_open = false) {
  ThinkingStyle style(is_open);
  std::string out;
  for (const std::string& piece : pieces) out += style.Apply(piece);
  return out + style.End();
}

std::string D(const std::string& text) { return kDim + text + kPlain; }

TEST(Thinking, IsDimmedHoweverItIsCut) {
  const std::string text = "\n<think>a < b </thin <</think>\nThe answer";
  const std::string expected = "\n<think>" + D("a < b </thin <</think>") + "\nThe answer";
  for (size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(Styled({text.substr(0, cut), text.substr(cut)}), expected) << cut;
}

TEST(Thinking, WhatTheTemplateOpenedIsDimmedFromTheStart) {
  EXPECT_EQ(Styled({"", "so </thi", "nk>4"}, true), D("so </think>") + "4");
}

TEST(Thinking, AnAnswerThatEndsInItLeavesTheTerminalPlain) {
  EXPECT_EQ(Styled({"<think>never", " done"}), "<think>" + D("never done"));
  EXPECT_EQ(Styled({}, true), "");
}

TEST(Thinking, TagsBehindTheStartAreText) {
  for (const std::string text : {"Use <think>x</think> tags", "<b><think>",
                                 "<<think>a</think>b</think>", "", "<thinking>", "<think", "a"}) {
    EXPECT_EQ(Styled({text}), text);
  }
}

TEST(Thinking, OnlyTheFirstOneCounts) {
  EXPECT_EQ(Styled({"<think>a</think><think>b</think>"}),
            "<think>" + D("a</think>") + "<think>b</think>");
}

PROPERTY(Thinking, TakesNothingFromTheText, 300) {
  std::string text;
  std::string styled;
  ThinkingStyle style(rng.Chance(0.3));
  for (int i = rng.In(0, 30); i > 0; --i) {
    const std::string piece =
        rng.OneOf<std::string>({"<", "think", ">", "</", "<think>", "</think>", "a", "\n", ""});
    text += piece;
    styled += style.Apply(piece);
  }
  styled += style.End();
  for (const std::string code : {kDim, kPlain}) {
    for (size_t at; (at = styled.find(code)) != std::string::npos;) styled.erase(at, code.size());
  }
  EXPECT_EQ(styled, text);
}

TEST(Thinking, IsFoundAtTheEndOfAPrompt) {
  const testing_support::ByteTokenizer tokenizer(260, 0);
  const auto ends_in_it = [&](const std::string& text) {
    return EndsInThinking(tokenizer.Encode(text), tokenizer);
  };
  EXPECT_TRUE(ends_in_it("assistant\n<think>\n"));
  EXPECT_TRUE(ends_in_it("<think>"));
  EXPECT_FALSE(ends_in_it("<think>\n\n</think>\n\n"));
  EXPECT_FALSE(ends_in_it("think>"));
  EXPECT_FALSE(ends_in_it(""));
}

}  // namespace
}  // namespace vericache::apps
