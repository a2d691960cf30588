// Goal: the fingerprint changes with whatever changes tokens or arithmetic, and with nothing
// else.
// Method: one byte of a tiny model changed at a time.

#include "model/fingerprint.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using testing_support::ReadBytes;
using testing_support::TempFolder;
using testing_support::TinyModelFile;

class FingerprintTest : public ::testing::Test {
 protected:
  std::string Of(const std::string& bytes) {
    ThreadTeam team(1);
    const auto model = Model::Load(folder_.Write("x.gguf", bytes), team);
    if (model.has_value()) return (*model)->Fingerprint();
    ADD_FAILURE() << model.error().message;
    return {};
  }
  std::string Changed(const std::string& from, const std::string& to) {
    std::string bytes = good_;
    const size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    bytes.replace(at, from.size(), to);
    return Of(bytes);
  }

  TempFolder folder_;
  const TinyModelFile tiny_;
  const std::string good_ = ReadBytes(tiny_.Path());
  const std::string fingerprint_ = Of(good_);
};

TEST_F(FingerprintTest, IsTheSha256OfTheModel) {
  EXPECT_EQ(fingerprint_.size(), 64u);
  EXPECT_EQ(fingerprint_.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(Of(good_), fingerprint_);
}

TEST_F(FingerprintTest, ChangesWithEveryTensorsData) {
  std::set<std::string> seen = {fingerprint_};
  const auto file = GgufFile::Open(tiny_.Path());
  for (const GgufTensor& tensor : file->Tensors()) {
    for (const uint64_t at : {tensor.offset + 2, tensor.offset + tensor.n_bytes - 1}) {
      std::string bytes = good_;
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      EXPECT_TRUE(seen.insert(Of(bytes)).second) << tensor.name;
    }
  }
}

TEST_F(FingerprintTest, ChangesWithHyperParametersAndTokens) {
  std::set<std::string> seen = {fingerprint_};
  const auto with = [&](TinyModelSpec spec) {
    const TinyModelFile other(spec);
    EXPECT_TRUE(seen.insert(Of(ReadBytes(other.Path()))).second);
  };
  with({.n_context = 4095});
  with({.rope_scaling = RopeScaling::kLinear});
  with({.rope_scaling = RopeScaling::kYarn});
  with({.rope_scaling = RopeScaling::kYarn, .rope_factor = 2.0});
  with({.has_frequency_factors = true});
  with({.seed = 2});
  EXPECT_TRUE(seen.insert(Changed("<|pad|>", "<|pod|>")).second);
  EXPECT_TRUE(seen.insert(Changed("smollm", "starco")).second);  // how words are split
}

TEST_F(FingerprintTest, IgnoresNamesAndTheChatTemplate) {
  EXPECT_EQ(Changed("tiny llama", "teny llama"), fingerprint_);
  EXPECT_EQ(Changed("{% for message", "{%-for message"), fingerprint_);
}

}  // namespace
}  // namespace vericache::model
