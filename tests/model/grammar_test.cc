// Goal: a grammar allows what it says and nothing else, at every state; what is wrong with one
// is said with its place; no grammar crashes, hangs or is ignored (S13, J7).
// Method: the tiny model's vocabulary, whose tokens are bytes and pairs of letters; allowed sets
// known by hand; grammars broken in one place each.

#include "model/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llama.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "model/tiny_vocab.h"
#include "tests/support/property.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using ::testing::HasSubstr;

const Tokenizer& TinyTokenizer() {
  static const testing_support::TinyModelFile file;
  static const auto tokenizer = Tokenizer::Load(file.Path());
  VC_CHECK(tokenizer.has_value());
  return **tokenizer;
}

Grammar Parsed(const std::string& gbnf) {
  auto grammar = Grammar::Parse(gbnf, TinyTokenizer());
  VC_CHECK(grammar.has_value(), "{}", grammar.error().message);
  return *std::move(grammar);
}

std::vector<llama_token_data> AllCandidates() {
  std::vector<llama_token_data> candidates;
  for (int id = 0; id < TinyTokenizer().VocabSize(); ++id) candidates.push_back({id, 1.0f, 0.0f});
  return candidates;
}

// The texts of what may come next; "<end>" for the ends of a generation.
std::vector<std::string> Allowed(Grammar& grammar) {
  std::vector<llama_token_data> candidates = AllCandidates();
  grammar.Forbid(candidates);
  std::vector<std::string> texts;
  for (const llama_token_data& c : candidates) {
    if (c.logit == -INFINITY) continue;
    const TokenId id{c.id};
    texts.push_back(TinyTokenizer().IsEndOfGeneration(id) ? "<end>" : TinyTokenizer().Piece(id));
  }
  return texts;
}

// One token a byte.
void AcceptBytes(Grammar& grammar, std::string_view text) {
  for (const char c : text) {
    const std::string byte(1, c);
    for (int id = 0; id < 256; ++id) {
      if (TinyTokenizer().Piece(TokenId{id}) == byte) grammar.Accept(TokenId{id});
    }
  }
}

TEST(Grammar, AllowsWhatItSaysAndNothingElse) {
  Grammar grammar = Parsed("root ::= (\"in\" | \"x\") \"e\" [0-2]?");
  EXPECT_THAT(Allowed(grammar), ::testing::UnorderedElementsAre("i", "in", "x"));
  AcceptBytes(grammar, "i");
  EXPECT_THAT(Allowed(grammar), ::testing::ElementsAre("n"));
  AcceptBytes(grammar, "ne");
  EXPECT_THAT(Allowed(grammar), ::testing::UnorderedElementsAre("0", "1", "2", "<end>", "<end>"));
  AcceptBytes(grammar, "1");
  EXPECT_THAT(Allowed(grammar), ::testing::UnorderedElementsAre("<end>", "<end>"));
}

// E0 80 A2 and C0 A2 are overlong forms of a quote, ED A0 80 is half a surrogate pair.
TEST(Grammar, TextIsUtf8) {
  Grammar grammar = Parsed("root ::= \"'\" [^']* \"'\"");
  AcceptBytes(grammar, "'");
  const auto is_allowed = [](Grammar& at, int byte) {
    std::vector<llama_token_data> candidates = AllCandidates();
    at.Forbid(candidates);
    return candidates[static_cast<size_t>(byte)].logit != -INFINITY;
  };
  for (const int byte : {0x80, 0xbf, 0xc0, 0xc1, 0xf5, 0xff}) {
    EXPECT_FALSE(is_allowed(grammar, byte)) << byte;
  }
  for (const int byte : {0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4}) {
    EXPECT_TRUE(is_allowed(grammar, byte)) << byte;
  }
  struct Second {
    const char* first;
    int least;
    int greatest;
  };
  for (const Second& s : {Second{"\xe0", 0xa0, 0xbf}, Second{"\xed", 0x80, 0x9f},
                          Second{"\xf0", 0x90, 0xbf}, Second{"\xf4", 0x80, 0x8f}}) {
    Grammar inside = grammar.Clone();
    AcceptBytes(inside, s.first);
    for (int byte = 0; byte < 256; ++byte) {
      EXPECT_EQ(is_allowed(inside, byte), byte >= s.least && byte <= s.greatest) << byte;
    }
  }
}

TEST(Grammar, NoEndInsideACharacter) {
  Grammar grammar = Parsed("root ::= .*");
  EXPECT_THAT(Allowed(grammar), ::testing::Contains("<end>"));
  AcceptBytes(grammar, "\xed");
  EXPECT_THAT(Allowed(grammar), ::testing::Not(::testing::Contains("<end>")));
  AcceptBytes(grammar, "\x95\x9c");
  EXPECT_THAT(Allowed(grammar), ::testing::Contains("<end>"));
}

// libllama asked about every token; what it allows counts if the text stays one of characters.
PROPERTY(Grammar, LookingAtFirstCharactersFirstChangesNothing, 20) {
  const std::string gbnfs[] = {"root ::= [^a-e\\x00]* | \"in\"+ \"[\" . [가-힣é]",
                               "root ::= (\"the\" | [ -~] | \"é\")+ \"x\"?",
                               "root ::= \"{\" ws \"}\" ws\nws ::= [ \\t\\n]*",
                               "root ::= \"\" | \"\\U0001F600\" | [x]{3}"};
  const std::string& gbnf = gbnfs[rng.In(0, 3)];
  Grammar grammar = Parsed(gbnf);
  const std::unique_ptr<llama_sampler, void (*)(llama_sampler*)> literal(
      llama_sampler_init_grammar(TinyTokenizer().Vocab(), gbnf.c_str(), "root"),
      llama_sampler_free);
  for (int step = 0; step < 8; ++step) {
    std::vector<llama_token_data> ours = AllCandidates();
    grammar.Forbid(ours);
    std::vector<llama_token_data> theirs = AllCandidates();
    llama_token_data_array array = {theirs.data(), theirs.size(), -1, false};
    llama_sampler_apply(literal.get(), &array);
    std::vector<int> allowed;
    for (size_t id = 0; id < ours.size(); ++id) {
      if (ours[id].logit != -INFINITY) {
        ASSERT_NE(theirs[id].logit, -INFINITY) << id;
        allowed.push_back(static_cast<int>(id));
        continue;
      }
      const std::string piece = TinyTokenizer().Piece(TokenId{static_cast<int>(id)});
      const bool is_ascii = !piece.empty() && static_cast<uint8_t>(piece[0]) < 0x80;
      if (is_ascii) {
        ASSERT_EQ(theirs[id].logit, -INFINITY) << piece;
      }
    }
    if (allowed.empty()) return;
    const TokenId token{
        allowed[static_cast<size_t>(rng.In(0, static_cast<int>(allowed.size()) - 1))]};
    if (TinyTokenizer().IsEndOfGeneration(token)) return;
    grammar.Accept(token);
    llama_sampler_accept(literal.get(), token.value);
  }
}

TEST(Grammar, OnlyEndsFollowAnEnd) {
  Grammar grammar = Parsed("root ::= \"a\"?");
  grammar.Accept(TokenId{kTinyTurnEnd});
  EXPECT_THAT(Allowed(grammar), ::testing::Contains("<end>"));
  Grammar empty = Parsed("root ::= \"\"");
  EXPECT_THAT(Allowed(empty), ::testing::Each("<end>"));
}

// A control token has no text; its name must not pass as text.
TEST(Grammar, ControlTokensAreNotText) {
  for (const char* gbnf : {"root ::= .*", "root ::= \"<|im_start|>\"", "root ::= [^a]+"}) {
    Grammar grammar = Parsed(gbnf);
    std::vector<llama_token_data> candidates = AllCandidates();
    grammar.Forbid(candidates);
    EXPECT_EQ(candidates[kTinyTurnStart].logit, -INFINITY) << gbnf;
    EXPECT_EQ(candidates[kTinyPad].logit, -INFINITY) << gbnf;
    EXPECT_NE(candidates['<'].logit, -INFINITY) << gbnf;
  }
}

TEST(Grammar, CharactersMayBeCutIntoTokens) {
  Grammar grammar = Parsed("root ::= [가-힣] \"!\"");
  EXPECT_FALSE(Allowed(grammar).empty());
  EXPECT_THAT(Allowed(grammar), ::testing::Not(::testing::Contains("a")));
  AcceptBytes(grammar, "\xed");
  EXPECT_THAT(Allowed(grammar), ::testing::Not(::testing::Contains("!")));
  AcceptBytes(grammar, "\x95\x9c");  // 한
  EXPECT_THAT(Allowed(grammar), ::testing::ElementsAre("!"));
}

TEST(Grammar, ClonesGoTheirOwnWay) {
  Grammar grammar = Parsed("root ::= \"ab\"+");
  AcceptBytes(grammar, "a");
  Grammar clone = grammar.Clone();
  AcceptBytes(clone, "b");
  EXPECT_THAT(Allowed(grammar), ::testing::ElementsAre("b"));
  EXPECT_THAT(Allowed(clone), ::testing::Contains("a"));
}

TEST(Grammar, CommentsAndQuotedParenthesesAreNoNesting) {
  std::string gbnf = "# ((((((\nroot ::= [(\\](]* \"(\\\"(\" # (\n";
  for (int i = 0; i < 500; ++i) gbnf += "r" + std::to_string(i) + " ::= \"((((\" [(((]\n";
  Parsed(gbnf);
}

std::string Nested(int depth) {
  const auto n = static_cast<size_t>(depth);
  return "root ::= " + std::string(n, '(') + "\"a\"" + std::string(n, ')');
}

struct Broken {
  std::string gbnf;
  std::string says;
};

TEST(Grammar, WhatIsWrongIsSaidWithItsPlace) {
  std::string many = "root ::= \"a\"\n";
  for (int i = 0; i < 10001; ++i) many += "r" + std::to_string(i) + " ::= \"a\"\n";
  const Broken cases[] = {
      {"root := \"a\"", "line 1, column 6: expecting ::="},
      {"# comment\nroot ::= \"a\"\n  ::= x", "line 3, column 3: expecting name"},
      {"root ::= (\"a\"", "line 1, column 14: expecting ')'"},
      {"root ::= \"a\\q\"", "unknown escape"},
      {"root ::= \"a", "unexpected end of input"},
      {"root ::= [a", "unexpected end of input"},
      {"root ::= * \"a\"", "expecting preceding item"},
      {"root ::= \"a\"{", "expecting an int"},
      {"root ::= \"a\"{5,2}", "line 1, column 13: a repetition"},
      {"root ::= \"a\" { 5 , 2 }", "line 1, column 14: a repetition"},
      {"root ::= \"a\"{9999999999999999999999}", "is wrong"},
      {"root ::= \"a\"{3000}", "number of repetitions"},
      {"root ::= item", "\"item\" without saying"},
      {"start ::= \"a\"", "no rule \"root\""},
      {"", "no rule \"root\""},
      {"root ::= root \"a\" | \"b\"", "left recursion"},
      {"root ::= a\na ::= b\nb ::= a \"x\"", "left recursion"},
      {"root ::= \"\xff\"", "line 1, column 11: not UTF-8"},
      {std::string("root ::= \"a\0b\"", 14), "zero byte"},
      {"root ::= <[5]>", "names a token"},
      {"root ::= !<|im_end|>", "names a token"},
      {"root ::= <|im_end|>", "names a token"},
      {Nested(60000), "deeper than 200"},
      {many, "rules"},
      {"root ::= " + std::string(1 << 20, ' ') + "\"a\"", "bytes"},
      {"%llguidance {}", "is wrong"},
  };
  for (const Broken& broken : cases) {
    const auto grammar = Grammar::Parse(broken.gbnf, TinyTokenizer());
    ASSERT_FALSE(grammar.has_value()) << broken.gbnf.substr(0, 100);
    EXPECT_THAT(grammar.error().message, HasSubstr(broken.says)) << broken.gbnf.substr(0, 100);
    EXPECT_EQ(grammar.error().message.find('\n'), std::string::npos);
    EXPECT_LT(grammar.error().message.size(), 300u);
  }
  Parsed(Nested(200));
}

}  // namespace
}  // namespace vericache::model
