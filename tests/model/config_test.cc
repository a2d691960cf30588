// Goal: hyper-parameters are read as llama.cpp reads them; a value that cannot be right is
// refused by name.
// Method: headers made by hand, one key changed at a time.

#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <variant>

#include "tests/support/gguf_bytes.h"

namespace vericache::model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::GgufBytes;
using testing_support::TempFolder;

using Value = std::variant<uint32_t, float, std::string>;
using Keys = std::map<std::string, Value>;

Keys GoodKeys(const std::string& architecture) {
  const auto key = [&](const char* name) { return architecture + "." + name; };
  return {{"general.architecture", architecture},
          {"general.name", "a model"},
          {key("block_count"), 3u},
          {key("context_length"), 1000u},
          {key("embedding_length"), 256u},
          {key("feed_forward_length"), 320u},
          {key("attention.head_count"), 8u},
          {key("attention.head_count_kv"), 2u},
          {key("attention.layer_norm_rms_epsilon"), 1e-6f}};
}

class ConfigTest : public ::testing::Test {
 protected:
  Result<ModelConfig> Read(const Keys& keys, const std::vector<float>& rope_freqs = {},
                           int64_t n_vocab = 500) {
    const bool has_freqs = !rope_freqs.empty();
    GgufBytes gguf(has_freqs ? 2 : 1, keys.size());
    for (const auto& [name, value] : keys) {
      if (const auto* count = std::get_if<uint32_t>(&value)) gguf.Uint32(name, *count);
      if (const auto* number = std::get_if<float>(&value)) gguf.Float32(name, *number);
      if (const auto* text = std::get_if<std::string>(&value)) gguf.Text(name, *text);
    }
    const int64_t n_freqs = static_cast<int64_t>(rope_freqs.size());
    gguf.Tensor("token_embd.weight", {32, n_vocab}, 0, has_freqs ? 512 : 0);
    if (has_freqs) gguf.Tensor("rope_freqs.weight", {n_freqs});
    gguf.PadTo(32);
    const size_t data = gguf.Bytes().size();
    for (const float factor : rope_freqs) gguf.Add(factor);
    gguf.Zeros(data + 512 + 32 * 500 * 4 - gguf.Bytes().size());
    const auto file = GgufFile::Open(folder_.Write("x.gguf", gguf.Bytes()));
    if (!file) return tl::unexpected(file.error());
    return ReadConfig(*file);
  }
  Result<ModelConfig> ReadWith(const std::string& key, const Value& value) {
    Keys keys = GoodKeys("llama");
    keys[key] = value;
    return Read(keys);
  }
  std::string Refusal(const std::string& key, const Value& value,
                      ErrorCode code = ErrorCode::kDataLoss) {
    const auto config = ReadWith(key, value);
    if (config.has_value()) {
      ADD_FAILURE() << key << " was accepted";
      return {};
    }
    EXPECT_EQ(config.error().code, code) << config.error().message;
    EXPECT_THAT(config.error().message, HasSubstr("x.gguf"));
    return config.error().message;
  }

  TempFolder folder_;
};

TEST_F(ConfigTest, ReadsEveryArchitecture) {
  const auto llama = Read(GoodKeys("llama"));
  ASSERT_TRUE(llama.has_value()) << llama.error().message;
  EXPECT_EQ(llama->architecture, Architecture::kLlama);
  EXPECT_EQ(llama->name, "a model");
  EXPECT_EQ(llama->n_layers, 3);
  EXPECT_EQ(llama->n_heads, 8);
  EXPECT_EQ(llama->n_kv_heads, 2);
  EXPECT_EQ(llama->head_dim, 32);
  EXPECT_EQ(llama->n_embd, 256);
  EXPECT_EQ(llama->n_ffn, 320);
  EXPECT_EQ(llama->n_vocab, 500);
  EXPECT_EQ(llama->n_context, 1000);
  EXPECT_EQ(llama->norm_eps, 1e-6f);
  EXPECT_EQ(llama->rope.base, 10000.0);
  EXPECT_EQ(llama->rope.n_dims, 32);
  EXPECT_EQ(llama->rope.pairs, kernels::RopePairs::kAdjacent);
  EXPECT_EQ(llama->rope.scaling, RopeScaling::kNone);
  EXPECT_TRUE(llama->rope.frequency_factors.empty());
  EXPECT_EQ(llama->Kv(), (kv::KvShape{3, 2, 32}));

  const auto qwen2 = Read(GoodKeys("qwen2"));
  ASSERT_TRUE(qwen2.has_value()) << qwen2.error().message;
  EXPECT_EQ(qwen2->architecture, Architecture::kQwen2);
  EXPECT_EQ(qwen2->rope.pairs, kernels::RopePairs::kHalves);

  const auto qwen3 = Read(GoodKeys("qwen3"));
  ASSERT_TRUE(qwen3.has_value()) << qwen3.error().message;
  EXPECT_EQ(qwen3->architecture, Architecture::kQwen3);
  EXPECT_EQ(qwen3->rope.pairs, kernels::RopePairs::kHalves);
}

TEST_F(ConfigTest, KeysThatMayBeAbsentHaveTheirDefaults) {
  Keys keys = GoodKeys("llama");
  keys.erase("llama.attention.head_count_kv");
  keys.erase("general.name");
  const auto config = Read(keys);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->n_kv_heads, 8);
  EXPECT_EQ(config->name, "");
  for (const char* key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length",
        "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    Keys fewer = GoodKeys("llama");
    fewer.erase(std::string("llama.") + key);
    const auto refused = Read(fewer);
    ASSERT_FALSE(refused.has_value()) << key;
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr(key), HasSubstr("missing")));
  }
}

TEST_F(ConfigTest, HeadDimensionMayDifferFromWidthOverHeads) {
  Keys keys = GoodKeys("llama");
  keys["llama.attention.key_length"] = 64u;
  keys["llama.attention.value_length"] = 64u;
  keys["llama.rope.dimension_count"] = 48u;
  const auto config = Read(keys);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->head_dim, 64);
  EXPECT_EQ(config->rope.n_dims, 48);
}

TEST_F(ConfigTest, ReadsRopeScaling) {
  Keys keys = GoodKeys("llama");
  keys["llama.rope.freq_base"] = 500000.0f;
  keys["llama.rope.scaling.factor"] = 4.0f;  // without a type: linear
  auto config = Read(keys);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->rope.base, 500000.0);
  EXPECT_EQ(config->rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(config->rope.factor, 4.0);
  EXPECT_EQ(config->rope.original_context, 1000);

  keys["llama.rope.scaling.type"] = "none";
  EXPECT_EQ(Read(keys)->rope.scaling, RopeScaling::kNone);

  keys["llama.rope.scaling.type"] = "yarn";
  keys["llama.rope.scaling.original_context_length"] = 250u;
  keys["llama.rope.scaling.attn_factor"] = 0.5f;
  keys["llama.rope.scaling.yarn_beta_fast"] = 16.0f;
  config = Read(keys);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(config->rope.original_context, 250);
  EXPECT_EQ(config->rope.attention_factor, 0.5);
  EXPECT_EQ(config->rope.beta_fast, 16.0);
  EXPECT_EQ(config->rope.beta_slow, 1.0);

  keys["llama.rope.scaling.type"] = "linear";
  EXPECT_THAT(Read(keys).error().message, HasSubstr("attn_factor"));
}

TEST_F(ConfigTest, ReadsFrequencyFactors) {
  std::vector<float> factors(16, 2.0f);
  factors[3] = 8.0f;
  const auto config = Read(GoodKeys("llama"), factors);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->rope.frequency_factors, factors);
  factors[5] = 0.0f;
  EXPECT_THAT(Read(GoodKeys("llama"), factors).error().message, HasSubstr("holds 0"));
  EXPECT_THAT(Read(GoodKeys("llama"), {1.0f, 1.0f}).error().message,
              HasSubstr("expected 16 of f32"));
}

TEST_F(ConfigTest, SaysWhichArchitecturesWork) {
  const std::string message = Refusal("general.architecture", "mamba", ErrorCode::kUnsupported);
  EXPECT_THAT(message, AllOf(HasSubstr("\"mamba\""), HasSubstr("llama, qwen2, qwen3")));
  Keys keys = GoodKeys("llama");
  keys.erase("general.architecture");
  EXPECT_THAT(Read(keys).error().message, HasSubstr("general.architecture"));
}

TEST_F(ConfigTest, RefusesValuesOutOfRange) {
  for (const char* key : {"llama.block_count", "llama.context_length", "llama.embedding_length",
                          "llama.feed_forward_length", "llama.attention.head_count",
                          "llama.attention.head_count_kv", "llama.rope.dimension_count"}) {
    EXPECT_THAT(Refusal(key, 0u), AllOf(HasSubstr(key), HasSubstr("is 0")));
    EXPECT_THAT(Refusal(key, 0xffffffffu), AllOf(HasSubstr(key), HasSubstr("is 4294967295")));
    EXPECT_THAT(Refusal(key, 8.0f), AllOf(HasSubstr(key), HasSubstr("not an integer")));
  }
  EXPECT_THAT(Refusal("llama.attention.head_count_kv", 3u), HasSubstr("not a multiple"));
  EXPECT_THAT(Refusal("llama.attention.head_count", 10u), HasSubstr("not a multiple"));
  EXPECT_THAT(Refusal("llama.rope.dimension_count", 31u), HasSubstr("even"));
  EXPECT_THAT(Refusal("llama.rope.dimension_count", 34u), HasSubstr("expected 1 to 32"));
  for (const float eps : {-1.0f, std::nanf(""), INFINITY, 2.0f}) {
    EXPECT_THAT(Refusal("llama.attention.layer_norm_rms_epsilon", eps), HasSubstr("epsilon"));
  }
  for (const float base : {0.0f, -10000.0f, std::nanf(""), INFINITY}) {
    EXPECT_THAT(Refusal("llama.rope.freq_base", base), HasSubstr("freq_base"));
  }
  EXPECT_THAT(Read(GoodKeys("llama"), {}, 499).value().n_vocab, 499);
}

TEST_F(ConfigTest, RefusesWhatWeCannotCompute) {
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  EXPECT_THAT(Refusal("llama.embedding_length", 200u, kUnsupported), HasSubstr("25 dimensions"));
  EXPECT_THAT(Refusal("llama.attention.key_length", 40u, kUnsupported), HasSubstr("40 dimensions"));
  EXPECT_THAT(Refusal("llama.attention.key_length", 512u, kUnsupported), HasSubstr("up to 256"));
  EXPECT_THAT(Refusal("llama.attention.value_length", 64u, kUnsupported), HasSubstr("values 64"));
  EXPECT_THAT(Refusal("llama.feed_forward_length", 330u, kUnsupported),
              HasSubstr("multiples of 32"));
  EXPECT_THAT(Refusal("llama.expert_count", 8u, kUnsupported), HasSubstr("experts"));
  EXPECT_THAT(Refusal("llama.rope.scaling.type", "longrope", kUnsupported), HasSubstr("longrope"));
  EXPECT_THAT(Refusal("llama.rope.scaling.yarn_ext_factor", 1.0f, kUnsupported),
              HasSubstr("yarn_ext_factor"));
  EXPECT_TRUE(ReadWith("llama.expert_count", 0u).has_value());
}

TEST_F(ConfigTest, TokenizerAndEmbeddingMustAgree) {
  GgufBytes gguf(1, 10);
  for (const auto& [name, value] : GoodKeys("llama")) {
    if (const auto* count = std::get_if<uint32_t>(&value)) gguf.Uint32(name, *count);
    if (const auto* number = std::get_if<float>(&value)) gguf.Float32(name, *number);
    if (const auto* text = std::get_if<std::string>(&value)) gguf.Text(name, *text);
  }
  gguf.Key("tokenizer.ggml.tokens", 9).Add(uint32_t{8}).Add(uint64_t{2}).String("a").String("b");
  gguf.Tensor("token_embd.weight", {8, 3}).PadTo(32).Zeros(96);
  const auto file = GgufFile::Open(folder_.Write("x.gguf", gguf.Bytes()));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_THAT(ReadConfig(*file).error().message,
              AllOf(HasSubstr("2 elements"), HasSubstr("3 rows")));
}

}  // namespace
}  // namespace vericache::model
