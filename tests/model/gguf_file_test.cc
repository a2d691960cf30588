// Goal: every malformed GGUF ends in one error that names the file and the value, and a good one
// is read as it was written.
// Method: files made byte by byte; good files cut and patched. Cases G1-G3 and G5-G8: public bug
// reports against other readers.

#include "model/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <limits>

#include "model/tiny_model.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/property.h"

namespace vericache::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::GgufBytes;
using testing_support::ReadBytes;
using testing_support::TempFolder;

class GgufFileTest : public ::testing::Test {
 protected:
  Result<GgufFile> Open(const std::string& bytes) {
    return GgufFile::Open(folder_.Write("x.gguf", bytes));
  }

  // The error's message, after checking what must hold for each.
  std::string Refusal(const GgufBytes& gguf, ErrorCode code = ErrorCode::kDataLoss) {
    return Refusal(gguf.Bytes(), code);
  }
  std::string Refusal(const std::string& bytes, ErrorCode code = ErrorCode::kDataLoss) {
    const auto file = Open(bytes);
    if (file.has_value()) {
      ADD_FAILURE() << "a bad file of " << bytes.size() << " bytes was accepted";
      return {};
    }
    EXPECT_EQ(file.error().code, code) << file.error().message;
    EXPECT_THAT(file.error().message, HasSubstr("x.gguf"));
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
    return file.error().message;
  }

  TempFolder folder_;
};

// One f32 tensor "t" of `shape`, with `n_bytes` of data behind it.
GgufBytes OneTensor(std::initializer_list<int64_t> shape, int32_t type = 0, uint64_t offset = 0,
                    size_t n_bytes = 128) {
  GgufBytes gguf(1, 0);
  gguf.Tensor("t", shape, type, offset).PadTo(32).Zeros(n_bytes);
  return gguf;
}

TEST_F(GgufFileTest, ReadsWhatWasWritten) {
  GgufBytes gguf(2, 7);
  gguf.Uint32("count", 7).Float32("eps", 0.5f).Text("name", "a model");
  gguf.Key("flag", 7)
      .Add(uint8_t{1})
      .Key("small", 1)
      .Add(int8_t{-3})
      .Key("wide", 10)
      .Add(uint64_t{1} << 40);
  gguf.Key("words", 9).Add(uint32_t{8}).Add(uint64_t{3}).String("one").String("").String("three");
  gguf.Tensor("a", {8, 4}).Tensor("b", {32}, 8, 128).PadTo(32).Zeros(128 + 34);
  const auto file = Open(gguf.Bytes());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->Integer("count").value(), 7);
  EXPECT_EQ(file->Integer("small").value(), -3);
  EXPECT_EQ(file->Integer("wide").value(), int64_t{1} << 40);
  EXPECT_EQ(file->Real("eps").value(), 0.5);
  EXPECT_EQ(file->String("name").value(), "a model");
  EXPECT_TRUE(file->Bool("flag").value());
  EXPECT_EQ(file->StringAt("words", 0).value(), "one");
  EXPECT_EQ(file->StringAt("words", 1).value(), "");
  EXPECT_EQ(file->StringAt("words", 2).value(), "three");
  ASSERT_EQ(file->Tensors().size(), 2u);
  const GgufTensor* b = file->FindTensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->n_bytes, 34u);
  EXPECT_EQ(b->offset, gguf.Bytes().size() - 34);
  EXPECT_EQ(file->FindTensor("a")->shape, (std::array<int64_t, 4>{8, 4, 1, 1}));
  EXPECT_EQ(file->FindTensor("c"), nullptr);
}

TEST_F(GgufFileTest, AsksForValuesByTheirType) {
  GgufBytes gguf(0, 4);
  gguf.Uint32("count", 7)
      .Text("name", "x")
      .Key("wide", 10)
      .Add(std::numeric_limits<uint64_t>::max());
  gguf.Key("list", 9).Add(uint32_t{8}).Add(uint64_t{1}).String("one");
  const auto file = Open(gguf.Bytes());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->Integer("absent").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(file->Integer("name").error().message, HasSubstr("\"name\" is not an integer"));
  EXPECT_THAT(file->Integer("list").error().message, HasSubstr("\"list\" is an array"));
  EXPECT_THAT(file->Integer("wide").error().message, HasSubstr("18446744073709551615"));
  EXPECT_THAT(file->Real("count").error().message,
              HasSubstr("\"count\" is not a floating-point number"));
  EXPECT_THAT(file->Bool("count").error().message, HasSubstr("\"count\" is not a truth value"));
  EXPECT_THAT(file->String("count").error().message, HasSubstr("\"count\" is not a string"));
  EXPECT_THAT(file->StringAt("count", 0).error().message, HasSubstr("\"count\" is one value"));
  EXPECT_THAT(file->StringAt("list", 1).error().message, HasSubstr("has 1 elements"));
}

TEST_F(GgufFileTest, RefusesOtherFormatsAndVersions) {
  EXPECT_THAT(Refusal("not a model at all, but long enough to hold a header"),
              HasSubstr("6e 6f 74 20"));
  EXPECT_THAT(Refusal(GgufBytes(0, 0, 1), ErrorCode::kUnsupported), HasSubstr("version 1"));
  EXPECT_THAT(Refusal(GgufBytes(0, 0, 4), ErrorCode::kUnsupported), HasSubstr("version 4"));
  EXPECT_THAT(Refusal(GgufBytes(0, 0, 0x03000000), ErrorCode::kUnsupported),
              HasSubstr("big-endian"));
  EXPECT_TRUE(Open(GgufBytes(0, 0, 2).Bytes()).has_value());
}

TEST_F(GgufFileTest, G1DimensionOfZero) {
  EXPECT_THAT(Refusal(OneTensor({1, 0})), AllOf(HasSubstr("\"t\""), HasSubstr("dimension of 0")));
  EXPECT_THAT(Refusal(OneTensor({0, 1})), HasSubstr("dimension of 0"));
}

TEST_F(GgufFileTest, G2SizesThatWrap) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Refusal(OneTensor({kMax, 2, 1, 1})), HasSubstr("overflows"));
  EXPECT_THAT(Refusal(OneTensor({int64_t{1} << 32, int64_t{1} << 32, 1, 1})),
              HasSubstr("overflows"));
  EXPECT_THAT(Refusal(OneTensor({kMax, 1, 1, 1})), HasSubstr("larger than the file"));
  EXPECT_THAT(Refusal(OneTensor({(int64_t{1} << 42) + 1, 1 << 20})),
              HasSubstr("larger than the file"));
  EXPECT_THAT(Refusal(OneTensor({(int64_t{1} << 62) + 8, 1})),
              HasSubstr("larger than the file"));  // times 4 wraps to 32
  EXPECT_THAT(Refusal(OneTensor({-1, 1})), HasSubstr("dimension of -1"));
  EXPECT_THAT(Refusal(OneTensor({8, std::numeric_limits<int64_t>::min()})),
              HasSubstr("-9223372036854775808"));
}

TEST_F(GgufFileTest, G3NumberOfDimensions) {
  for (const uint32_t n_dims : {0u, 5u, 9u, 1000000u, 0xffffffffu}) {
    GgufBytes gguf(1, 0);
    gguf.String("t")
        .Add(n_dims)
        .Add(int64_t{1})
        .Add(int64_t{1})
        .Add(int32_t{0})
        .Add(uint64_t{0})
        .PadTo(32)
        .Zeros(64);
    EXPECT_THAT(Refusal(gguf), HasSubstr(fmt::format("has {} dimensions", n_dims)));
  }
}

TEST_F(GgufFileTest, G5LengthsBeyondTheFile) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  for (const uint64_t length :
       {kGiB - 1, kGiB, uint64_t{1} << 62, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    GgufBytes text(0, 1);
    text.Key("k", 8).Add(length).Zeros(100);
    EXPECT_THAT(Refusal(text), HasSubstr(std::to_string(length)));
    GgufBytes key(0, 1);
    key.Add(length).Zeros(100);
    EXPECT_THAT(Refusal(key), HasSubstr(std::to_string(length)));
    for (const uint32_t element : {0u, 5u, 7u, 8u, 12u}) {
      GgufBytes array(0, 1);
      array.Key("k", 9).Add(element).Add(length).Zeros(100);
      EXPECT_THAT(Refusal(array), HasSubstr(std::to_string(length)));
    }
    GgufBytes name(1, 0);
    name.Add(length).Zeros(100);
    EXPECT_THAT(Refusal(name), HasSubstr(std::to_string(length)));
  }
  GgufBytes alignment(1, 1);
  alignment.Uint32("general.alignment", 1u << 30).Tensor("t", {8}).Zeros(256);
  EXPECT_THAT(Refusal(alignment), HasSubstr("padding"));
}

TEST_F(GgufFileTest, G5CountsBeyondTheFile) {
  for (const uint64_t count :
       {uint64_t{1000}, uint64_t{1} << 16, uint64_t{1} << 32, ~uint64_t{0}}) {
    Refusal(GgufBytes(count, 0).Zeros(100));
    Refusal(GgufBytes(0, count).Zeros(100));
  }
}

TEST_F(GgufFileTest, G6Alignment) {
  for (const uint32_t alignment : {0u, 3u, 33u, 0xffffffffu}) {
    GgufBytes gguf(1, 1);
    gguf.Uint32("general.alignment", alignment).Tensor("t", {8}).Zeros(256);
    EXPECT_THAT(Refusal(gguf), HasSubstr(fmt::format("general.alignment is {}", alignment)));
  }
  GgufBytes wrong_type(1, 1);
  wrong_type.Text("general.alignment", "32").Tensor("t", {8}).Zeros(256);
  EXPECT_THAT(Refusal(wrong_type), HasSubstr("not a 32-bit unsigned integer"));
  GgufBytes good(1, 1);
  good.Uint32("general.alignment", 64).Tensor("t", {8}).PadTo(64).Zeros(32);
  EXPECT_TRUE(Open(good.Bytes()).has_value());
}

TEST_F(GgufFileTest, G7NamesThatAreEmptyOrAppearTwice) {
  EXPECT_THAT(Refusal(GgufBytes(0, 1).Uint32("", 1)), HasSubstr("key 0 is empty"));
  EXPECT_THAT(Refusal(GgufBytes(0, 2).Uint32("k", 1).Uint32("k", 2)),
              HasSubstr("key \"k\" appears twice"));
  EXPECT_THAT(Refusal(GgufBytes(1, 0).Tensor("", {8}).PadTo(32).Zeros(64)),
              HasSubstr("name of tensor 0 is empty"));
  EXPECT_THAT(Refusal(GgufBytes(2, 0).Tensor("t", {8}).Tensor("t", {8}, 0, 32).PadTo(32).Zeros(64)),
              HasSubstr("tensor \"t\" appears twice"));
  const std::string long_name(64, 'n');
  EXPECT_THAT(Refusal(GgufBytes(1, 0).Tensor(long_name, {8}).PadTo(32).Zeros(64)),
              HasSubstr("at most 63"));
}

TEST_F(GgufFileTest, RefusesTypesThatDoNotExist) {
  EXPECT_THAT(Refusal(GgufBytes(0, 1).Key("k", 13).Zeros(64)), HasSubstr("type 13"));
  EXPECT_THAT(Refusal(GgufBytes(0, 1).Key("k", 0xffffffffu).Zeros(64)),
              HasSubstr("type 4294967295"));
  EXPECT_THAT(Refusal(GgufBytes(0, 1).Key("k", 9).Add(uint32_t{9}).Add(uint64_t{1}).Zeros(64)),
              HasSubstr("arrays of arrays"));
  for (const int32_t type :
       {-1, 4, 5, 1000, std::numeric_limits<int32_t>::max()}) {  // 4 and 5 were removed
    EXPECT_THAT(Refusal(OneTensor({32}, type)), HasSubstr(fmt::format("has type {}", type)));
  }
  EXPECT_THAT(Refusal(OneTensor({33}, 8)), HasSubstr("33 elements, not a multiple of 32"));
}

TEST_F(GgufFileTest, G8DataPastTheEnd) {
  EXPECT_THAT(Refusal(OneTensor({8, 4}, 0, 32)), HasSubstr("truncated?"));
  EXPECT_THAT(Refusal(OneTensor({8, 4}, 0, ~uint64_t{31})), HasSubstr("18446744073709551584"));
  EXPECT_THAT(Refusal(OneTensor({8, 4}, 0, 8)), HasSubstr("not a multiple of the alignment"));
  EXPECT_TRUE(Open(OneTensor({8, 4}).Bytes()).has_value());
}

TEST_F(GgufFileTest, G8CutAnywhere) {
  ASSERT_TRUE(WriteTinyModel({}, folder_.Path("tiny.gguf")).has_value());
  const std::string good = ReadBytes(folder_.Path("tiny.gguf"));
  const auto whole = Open(good);
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  std::vector<size_t> cuts;
  for (size_t i = 1; i < 16; ++i) cuts.push_back(good.size() * i / 16);
  for (const GgufTensor& tensor : whole->Tensors()) {
    for (const uint64_t edge : {tensor.offset, tensor.offset + tensor.n_bytes}) {
      cuts.push_back(edge - 1);
      cuts.push_back(edge);
      cuts.push_back(edge + 1);
    }
  }
  uint64_t n_needed = 0;
  for (const GgufTensor& tensor : whole->Tensors())
    n_needed = std::max(n_needed, tensor.offset + tensor.n_bytes);
  for (const size_t cut : cuts) {
    if (cut >= n_needed) continue;
    EXPECT_THAT(Refusal(good.substr(0, cut)), HasSubstr("truncated?")) << "cut at " << cut;
  }
  EXPECT_TRUE(Open(good.substr(0, n_needed)).has_value())
      << "the padding behind the last tensor may be missing";
}

// Any byte of a header may be wrong: an error or another header, never a crash; and never more
// memory or time than the file is worth.
PROPERTY(GgufFile, SurvivesAnyDamage, 300) {
  static const TempFolder folder;
  static const std::string good = [] {
    EXPECT_TRUE(WriteTinyModel({.n_layers = 1}, folder.Path("tiny.gguf")).has_value());
    return ReadBytes(folder.Path("tiny.gguf")).substr(0, 12000);
  }();
  std::string bad = good;
  const int n_damages = rng.In(1, 4);
  for (int i = 0; i < n_damages; ++i) {
    const auto at = static_cast<size_t>(rng.In(0, static_cast<int>(bad.size()) - 9));
    const uint64_t value = rng.OneOf<uint64_t>(
        {0, 1, 0xff, 0x7fffffff, 0xffffffff, ~uint64_t{0}, uint64_t{1} << 63, rng.Next()});
    std::memcpy(bad.data() + at, &value, rng.OneOf<size_t>({1, 2, 4, 8}));
  }
  const auto file = GgufFile::Open(folder.Write("bad.gguf", bad));
  if (!file) {
    EXPECT_THAT(file.error().message, HasSubstr("bad.gguf"));
  }
}

TEST_F(GgufFileTest, CostsLittleWhateverIsDeclared) {
  const auto start = std::chrono::steady_clock::now();
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  // 2^16 keys, each an array of many empty strings, in a sparse file of a gigabyte.
  GgufBytes gguf(0, 1);
  gguf.Key("k", 9).Add(uint32_t{0}).Add(uint64_t{1} << 30);
  const std::string path = folder_.Write("sparse.gguf", gguf.Bytes());
  std::filesystem::resize_file(path, (uint64_t{1} << 30) + 100);
  EXPECT_TRUE(GgufFile::Open(path).has_value());
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100 << 10) << "KiB";
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

}  // namespace
}  // namespace vericache::model
