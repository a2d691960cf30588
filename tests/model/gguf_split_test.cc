// Goal: a model split over several files is the model it was split from, and files that do not
// belong together are refused by name (case G13).
// Method: a tiny model split through ggml's own writer, as gguf-split does it: all keys and some
// tensors in the first file, three keys and the rest in the others.

#include "model/gguf_split.h"

#include <ggml.h>
#include <gguf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/chat_template.h"
#include "model/tokenizer.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::ReadBytes;
using testing_support::TempFolder;
using testing_support::TinyModelFile;

std::string PartName(int number, int count, const std::string& prefix = "tiny") {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number + 1, count);
}

// Deals the tensors of the file out in turn; returns the path of the first part.
std::string Split(const std::string& from, const TempFolder& folder, int count,
                  const std::string& prefix = "tiny") {
  ggml_context* data = nullptr;
  gguf_context* whole = gguf_init_from_file(from.c_str(), {.no_alloc = false, .ctx = &data});
  const int64_t n_tensors = gguf_get_n_tensors(whole);
  for (int number = 0; number < count; ++number) {
    gguf_context* part = gguf_init_empty();
    if (number == 0) gguf_set_kv(part, whole);
    gguf_set_val_u16(part, "split.no", static_cast<uint16_t>(number));
    gguf_set_val_u16(part, "split.count", static_cast<uint16_t>(count));
    gguf_set_val_i32(part, "split.tensors.count", static_cast<int32_t>(n_tensors));
    for (int64_t i = number; i < n_tensors; i += count)
      gguf_add_tensor(part, ggml_get_tensor(data, gguf_get_tensor_name(whole, i)));
    EXPECT_TRUE(
        gguf_write_to_file(part, folder.Path(PartName(number, count, prefix)).c_str(), false));
    gguf_free(part);
  }
  gguf_free(whole);
  ggml_free(data);
  return folder.Path(PartName(0, count, prefix));
}

class GgufSplitTest : public ::testing::Test {
 protected:
  std::string Refusal(const std::string& path, ErrorCode code = ErrorCode::kDataLoss) {
    const auto file = GgufFile::Open(path);
    if (file.has_value()) {
      ADD_FAILURE() << path << " was accepted";
      return {};
    }
    EXPECT_EQ(file.error().code, code) << file.error().message;
    return file.error().message;
  }
  void Move(const std::string& from, const std::string& to) {
    std::filesystem::rename(folder_.Path(from), folder_.Path(to));
  }

  TinyModelFile tiny_{{.weight_type = "q4_0", .is_tied = false, .has_frequency_factors = true}};
  TempFolder folder_;
};

TEST_F(GgufSplitTest, IsTheModelItWasSplitFrom) {
  ThreadTeam team(2);
  const auto whole = Model::Load(tiny_.Path(), team);
  ASSERT_TRUE(whole.has_value());
  for (const int count : {2, 5}) {
    const std::string path = Split(tiny_.Path(), folder_, count);
    const auto split = Model::Load(path, team);
    ASSERT_TRUE(split.has_value()) << split.error().message;
    EXPECT_EQ((*split)->Fingerprint(), (*whole)->Fingerprint());
    EXPECT_EQ((*split)->Config().rope.frequency_factors, (*whole)->Config().rope.frequency_factors);
    const auto tokenizer = Tokenizer::Load(path);
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    EXPECT_EQ((*tokenizer)->Encode("a text"), (*Tokenizer::Load(tiny_.Path()))->Encode("a text"));
    EXPECT_TRUE(ChatTemplate::Load(path, "").has_value());
    const auto file = GgufFile::Open(path);
    EXPECT_EQ(file->PartCount(), count);
    EXPECT_GT(file->SizeInBytes(), std::filesystem::file_size(tiny_.Path()));
  }
}

TEST_F(GgufSplitTest, OnePartOfOneIsAWholeModel) {
  EXPECT_TRUE(GgufFile::Open(Split(tiny_.Path(), folder_, 1)).has_value());
}

TEST_F(GgufSplitTest, AnotherPartThanTheFirstNamesTheFirst) {
  Split(tiny_.Path(), folder_, 3);
  EXPECT_THAT(Refusal(folder_.Path(PartName(1, 3)), ErrorCode::kInvalidArgument),
              AllOf(HasSubstr("part 2 of"), HasSubstr("give the first one"),
                    HasSubstr(folder_.Path(PartName(0, 3)))));
}

TEST_F(GgufSplitTest, ARenamedPartSaysWhatItsNameShouldBe) {
  Split(tiny_.Path(), folder_, 3);
  Move(PartName(0, 3), "model.gguf");
  EXPECT_THAT(Refusal(folder_.Path("model.gguf"), ErrorCode::kInvalidArgument),
              HasSubstr("\"...-00001-of-00003.gguf\""));
}

TEST_F(GgufSplitTest, G13AMissingPartIsNamed) {
  const std::string path = Split(tiny_.Path(), folder_, 3);
  std::filesystem::remove(folder_.Path(PartName(2, 3)));
  EXPECT_THAT(Refusal(path, ErrorCode::kNotFound), HasSubstr(PartName(2, 3)));
}

TEST_F(GgufSplitTest, G13ACutPartIsNamed) {
  const std::string path = Split(tiny_.Path(), folder_, 3);
  const std::string name = PartName(1, 3);
  const std::string bytes = ReadBytes(folder_.Path(name));
  folder_.Write(name, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(Refusal(path), AllOf(HasSubstr(name), HasSubstr("truncated?")));
}

TEST_F(GgufSplitTest, G13APartOfAnotherModelIsRefused) {
  const std::string path = Split(tiny_.Path(), folder_, 3);
  const std::string third = ReadBytes(folder_.Path(PartName(2, 3)));
  std::filesystem::copy_file(folder_.Path(PartName(1, 3)), folder_.Path(PartName(2, 3)),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Refusal(path), AllOf(HasSubstr("part 2 of 3"), HasSubstr("expected part 3 of 3")));

  // The right number, another division of the same tensors.
  Split(tiny_.Path(), folder_, 4, "other");
  Move(PartName(1, 4, "other"), PartName(1, 3));
  EXPECT_THAT(Refusal(path), HasSubstr("part 2 of 4"));

  // A model with fewer layers: its third part's tensors collide, or some are missing.
  folder_.Write(PartName(2, 3), third);
  const TinyModelFile small({.n_layers = 1});
  Split(small.Path(), folder_, 3, "small");
  Move(PartName(1, 3, "small"), PartName(1, 3));
  EXPECT_THAT(Refusal(path), ::testing::AnyOf(HasSubstr("earlier part"), HasSubstr("expected")));
}

TEST_F(GgufSplitTest, ATensorInTwoPartsIsRefused) {
  const std::string path = Split(tiny_.Path(), folder_, 2);
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.has_value());
  const std::string ours = "blk.0.attn_q.weight";  // as long as that of k
  const std::string theirs = "blk.0.attn_k.weight";
  const int part = file->FindTensor(theirs)->part;
  ASSERT_NE(file->FindTensor(ours)->part, part);
  std::string bytes = ReadBytes(folder_.Path(PartName(part, 2)));
  bytes.replace(bytes.find(theirs), ours.size(), ours);
  folder_.Write(PartName(part, 2), bytes);
  EXPECT_THAT(Refusal(path), AllOf(HasSubstr(ours), HasSubstr("earlier part")));
}

TEST_F(GgufSplitTest, NumbersThatCannotBeAreRefused) {
  const std::string path = Split(tiny_.Path(), folder_, 2);
  const std::string good = ReadBytes(path);
  const auto damaged = [&](const char* key, uint16_t value) {
    std::string bytes = good;
    const size_t at = bytes.find(key) + std::string(key).size() + sizeof(uint32_t);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return folder_.Write(PartName(0, 2), bytes);
  };
  EXPECT_THAT(Refusal(damaged("split.count", 60000)), HasSubstr("is 60000"));
  EXPECT_THAT(Refusal(damaged("split.no", 2)), HasSubstr("part 2 of 2"));
  EXPECT_THAT(Refusal(damaged("split.tensors.count", 7)), HasSubstr("expected 7"));
}

}  // namespace
}  // namespace vericache::model
