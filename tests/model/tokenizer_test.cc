// Goal: every text comes back as it was; control tokens come from EncodeWithControl only; a
// vocabulary that libllama would abort on is refused. Cases T1, T5, T7, T8, T11, T12: public bug
// reports against other engines.
// Method: the tiny model's byte-level vocabulary; random Unicode and random bytes; long
// stretches of one character.

#include "model/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/gguf_file.h"
#include "model/tiny_vocab.h"
#include "tests/support/property.h"
#include "tests/support/random_text.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::AllArchitectures;
using testing_support::RandomBytes;
using testing_support::RandomUnicode;
using testing_support::ReadBytes;
using testing_support::TempFolder;
using testing_support::TinyModelFile;

const Tokenizer& Tiny(Architecture architecture = Architecture::kLlama) {
  static std::map<Architecture, std::unique_ptr<Tokenizer>> loaded;
  std::unique_ptr<Tokenizer>& tokenizer = loaded[architecture];
  if (tokenizer == nullptr) {
    tokenizer = std::move(*Tokenizer::Load(TinyModelFile({.architecture = architecture}).Path()));
  }
  return *tokenizer;
}

std::string Decode(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : tokens) text += tokenizer.Piece(token);
  return text;
}

TEST(Tokenizer, EncodesByMerges) {
  const std::vector<TokenId> tokens = Tiny().Encode("a the");
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(Tiny().Piece(tokens[0]), "a");
  EXPECT_EQ(Tiny().Piece(tokens[1]), " the");
  EXPECT_TRUE(Tiny().Encode("").empty());
  EXPECT_EQ(Tiny().VocabSize(), 320);
  EXPECT_EQ(Tiny().Bos().value, -1);
}

TEST(Tokenizer, ControlTokensComeFromTemplateTextOnly) {
  const std::string text = "hi<|im_end|>";
  const std::vector<TokenId> plain = Tiny().Encode(text);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), TokenId{kTinyTurnEnd}), 0);
  EXPECT_EQ(Decode(Tiny(), plain), text);
  const std::vector<TokenId> special = Tiny().EncodeWithControl(text);
  EXPECT_EQ(special.back(), TokenId{kTinyTurnEnd});
  EXPECT_EQ(Decode(Tiny(), special), "hi");
  EXPECT_THAT(Tiny().EncodeWithControl("<|im_start|>"), ElementsAre(TokenId{kTinyTurnStart}));
}

TEST(Tokenizer, KnowsTheEndAndGivesControlTokensNoText) {
  EXPECT_TRUE(Tiny().IsEndOfGeneration(TokenId{kTinyTurnEnd}));
  EXPECT_FALSE(Tiny().IsEndOfGeneration(TokenId{'a'}));
  EXPECT_EQ(Tiny().Piece(TokenId{kTinyTurnStart}), "");
  for (const int id : {-1, 320, 1 << 30}) {
    EXPECT_EQ(Tiny().Piece(TokenId{id}), "");
    EXPECT_FALSE(Tiny().IsEndOfGeneration(TokenId{id}));
  }
}

PROPERTY(Tokenizer, BringsBackRandomUnicode, 500) {
  const Tokenizer& tokenizer = Tiny(rng.OneOf({Architecture::kLlama, Architecture::kQwen2}));
  const std::string text = RandomUnicode(rng, rng.In(0, 200));
  EXPECT_EQ(Decode(tokenizer, tokenizer.Encode(text)), text);
}

PROPERTY(Tokenizer, BringsBackRandomBytes, 100) {
  const std::string text = RandomBytes(rng, rng.In(0, 200));
  EXPECT_EQ(Decode(Tiny(), Tiny().Encode(text)), text);
  EXPECT_EQ(Decode(Tiny(), Tiny().EncodeWithControl(text)), text);
}

TEST(Tokenizer, BringsBackWhatOthersLose) {
  for (const std::string& text :
       {std::string("a\0b\0", 4),
        std::string("\xef\xbb\xbf"
                    "bom"),
        std::string("\xe2\x80\xa8"), std::string("six\t\t\t\t\t\ttest"), std::string("hello !"),
        std::string("  lead and trail  \n\n"), std::string("\xed\xa0\x80"),
        std::string("\xf0\x80\x80"
                    "A"),
        std::string("\xe0\xa4\xa8\xe0\xa4\xae\xe0\xa4\xb8\xe0\xa5\x8d\xe0\xa4\xa4\xe0\xa5\x87"),
        std::string("\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d"), std::string("<pad>text<eos>")}) {
    EXPECT_EQ(Decode(Tiny(), Tiny().Encode(text)), text);
  }
}

TEST(Tokenizer, T1LongStretchesOfOneCharacter) {
  for (const char* character : {"a", "7", " ", "\n", ".", "\xe4\xb8\x80", "\xcc\x81"}) {
    std::string text;
    while (text.size() < 60000) text += character;
    for (const Architecture architecture : AllArchitectures()) {
      EXPECT_TRUE(Decode(Tiny(architecture), Tiny(architecture).Encode(text)) == text)
          << "'" << character << "'";
    }
  }
}

// A long stretch is cut, and never inside a control token.
TEST(Tokenizer, LongStretchesKeepControlTokensWhole) {
  for (int before = 8150; before < 8200; before += 3) {
    const std::string text =
        std::string(static_cast<size_t>(before), 'x') + "<|im_end|>" + std::string(9000, 'y');
    const std::vector<TokenId> tokens = Tiny().EncodeWithControl(text);
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), TokenId{kTinyTurnEnd}), 1) << before;
    EXPECT_EQ(Decode(Tiny(), tokens).size(), text.size() - 10);
  }
}

class BadVocabulary : public ::testing::Test {
 protected:
  std::string Refusal(const std::string& from, const std::string& to,
                      ErrorCode code = ErrorCode::kDataLoss) {
    std::string bytes = good_;
    const size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    bytes.replace(at, from.size(), to);
    const auto tokenizer = Tokenizer::Load(folder_.Write("x.gguf", bytes));
    if (tokenizer.has_value()) {
      ADD_FAILURE() << to << " was accepted";
      return {};
    }
    EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
    EXPECT_THAT(tokenizer.error().message, HasSubstr("x.gguf"));
    return tokenizer.error().message;
  }
  TempFolder folder_;
  const std::string good_ = ReadBytes(TinyModelFile({.n_layers = 1}).Path());
};

std::string Length(uint64_t n) { return {reinterpret_cast<const char*>(&n), sizeof n}; }

TEST_F(BadVocabulary, TokensThatAppearTwice) {
  EXPECT_THAT(Refusal(Length(1) + "B", Length(1) + "A"),
              HasSubstr("token 66 of key \"tokenizer.ggml.tokens\" appears twice"));
}

TEST_F(BadVocabulary, MissingOrOfAnotherKind) {
  EXPECT_THAT(Refusal("tokenizer.ggml.tokens", "tokenizer.ggml.tokenz", ErrorCode::kUnsupported),
              HasSubstr("has no tokenizer"));
  EXPECT_THAT(Refusal("tokenizer.ggml.merges", "tokenizer.ggml.mergez"), HasSubstr("merges"));
  for (const char* kind : {"none", "rwkv", "bert", "test"}) {
    EXPECT_THAT(Refusal(Length(4) + "gpt2", Length(4) + kind, ErrorCode::kUnsupported),
                AllOf(HasSubstr(kind), HasSubstr("gpt2, llama")));
  }
  EXPECT_THAT(Refusal("tokenizer.ggml.model", "tokenizer.ggml.modex", ErrorCode::kUnsupported),
              HasSubstr("has no tokenizer"));
  EXPECT_THAT(Refusal("smollm", "unheard"), HasSubstr("x.gguf"));
}

}  // namespace
}  // namespace vericache::model
