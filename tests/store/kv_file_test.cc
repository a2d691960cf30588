// Goal: what is read back is what was written, bit for bit, or a clear error: files cut
// anywhere, bits flipped anywhere, other files, other models (K2, I9).
// Method: random KV; every kind of damage over a small file; the pool is asked afterwards.

#include "store/kv_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/gguf_bytes.h"
#include "tests/support/kv_model.h"
#include "tests/support/property.h"

namespace vericache::store {
namespace {

using testing_support::KvModel;
using testing_support::ReadBytes;
using testing_support::ReadModel;
using testing_support::Rng;
using testing_support::TempFolder;

const KvFileKey kKey{.model = std::string(64, 'a'), .numerics = 1};
constexpr kv::KvShape kShape{.n_layers = 2, .n_kv_heads = 1, .head_dim = 16};

struct Kv {
  explicit Kv(const kv::KvShape& shape, int n_blocks = 8)
      : pool(shape,
             kv::BlockLayout(shape).Bytes() * static_cast<size_t>(n_blocks * shape.n_layers)),
        full(pool) {}
  kv::BlockPool pool;
  kv::FullKv full;
};

KvModel Fill(Rng& rng, kv::FullKv& full, int n_tokens) {
  KvModel model(static_cast<size_t>(full.Shape().HeadCount()));
  EXPECT_TRUE(full.Reserve(n_tokens).has_value());
  for (int row = 0; row < n_tokens; ++row) testing_support::WriteModelRow(rng, full, row, model);
  full.Commit(n_tokens);
  return model;
}

KvFileText TextOf(int n_tokens, std::string note = "") {
  KvFileText text{.tokens = {}, .note = std::move(note)};
  for (int i = 0; i < n_tokens; ++i) text.tokens.emplace_back(7 * i + 1);
  return text;
}

PROPERTY(KvFile, ReadsBackWhatWasWritten, 15) {
  const TempFolder folder;
  const std::string path = folder.Path("kv");
  const kv::KvShape shape{
      .n_layers = rng.In(1, 3), .n_kv_heads = rng.In(1, 3), .head_dim = rng.OneOf({16, 32, 80})};
  Kv written(shape);
  const int n_tokens = rng.OneOf({1, 255, 256, 257, 600});
  KvModel model = Fill(rng, written.full, n_tokens);
  const int n_saved = rng.Chance(0.5) ? n_tokens : rng.In(0, n_tokens);
  for (auto& head : model) head.resize(static_cast<size_t>(n_saved));
  const KvFileText text = TextOf(n_saved, rng.Chance(0.5) ? std::string("a note\0\n", 8) : "");
  ASSERT_TRUE(WriteKvFile(path, kKey, text, written.full).has_value());

  Kv read(shape);
  const auto result = ReadKvFile(path, kKey, read.full);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->tokens, text.tokens);
  EXPECT_EQ(result->note, text.note);
  EXPECT_EQ(ReadModel(read.full), model);
}

// Slots behind the tokens hold what other conversations left there.
TEST(KvFile, HoldsNothingBehindItsTokens) {
  const TempFolder folder;
  Rng rng(1);
  Kv long_kv(kShape);
  Fill(rng, long_kv.full, 300);
  Kv short_kv(kShape);
  rng = Rng(1);
  Fill(rng, short_kv.full, 270);
  ASSERT_TRUE(WriteKvFile(folder.Path("a"), kKey, TextOf(270), long_kv.full).has_value());
  ASSERT_TRUE(WriteKvFile(folder.Path("b"), kKey, TextOf(270), short_kv.full).has_value());
  EXPECT_TRUE(ReadBytes(folder.Path("a")) == ReadBytes(folder.Path("b")));
}

// ---- what is refused ----------------------------------------------------------------------------
class KvFileErrors : public testing::Test {
 protected:
  KvFileErrors() {
    Rng rng(3);
    Kv written(kShape);
    Fill(rng, written.full, 300);
    EXPECT_TRUE(WriteKvFile(path_, kKey, TextOf(300, "note"), written.full).has_value());
    bytes_ = ReadBytes(path_);
  }
  // Reads a file of these bytes; whatever is refused leaves no block held.
  Result<KvFileText> Read(std::string_view bytes, const KvFileKey& key = kKey, int n_blocks = 8) {
    folder_.Write("kv", bytes);
    Kv read(kShape, n_blocks);
    auto result = ReadKvFile(path_, key, read.full);
    EXPECT_EQ(read.full.Length(), result ? 300 : 0);
    return result;
  }
  void ExpectRefused(const Result<KvFileText>& result, ErrorCode code, std::string_view text) {
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
    EXPECT_NE(result.error().message.find(path_), std::string::npos) << result.error().message;
  }

  TempFolder folder_;
  std::string path_ = folder_.Path("kv");
  std::string bytes_;
};

TEST_F(KvFileErrors, AFileCutAnywhereIsDamaged) {
  ASSERT_TRUE(Read(bytes_).has_value());
  for (size_t n = 0; n < bytes_.size(); n += n < 1400 ? 23 : 2999) {
    ExpectRefused(Read(bytes_.substr(0, n)), ErrorCode::kDataLoss, "is damaged");
    if (HasFailure()) FAIL() << "cut at " << n;
  }
  ExpectRefused(Read(bytes_.substr(0, bytes_.size() - 1)), ErrorCode::kDataLoss, "is damaged");
  ExpectRefused(Read(bytes_ + "x"), ErrorCode::kDataLoss, "is damaged");
}

TEST_F(KvFileErrors, AFlippedBitAnywhereIsDamage) {
  for (size_t at = 8; at < bytes_.size(); at += at < 112 ? 1 : 1499) {
    std::string flipped = bytes_;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    ExpectRefused(Read(flipped), ErrorCode::kDataLoss, "is damaged");
    if (HasFailure()) FAIL() << "flipped at " << at;
  }
}

TEST_F(KvFileErrors, SwappedBlocksAreDamage) {
  const size_t n_chunk = kv::BlockLayout(kShape).Bytes() + 8;
  std::string swapped = bytes_.substr(0, bytes_.size() - 2 * n_chunk);
  swapped += bytes_.substr(bytes_.size() - n_chunk);
  swapped += bytes_.substr(bytes_.size() - 2 * n_chunk, n_chunk);
  ExpectRefused(Read(swapped), ErrorCode::kDataLoss, "256 on");
}

TEST_F(KvFileErrors, OtherFilesAndModelsAreRefused) {
  ExpectRefused(Read("a report that somebody still needs"), ErrorCode::kInvalidArgument,
                "no KV file");
  ExpectRefused(Read("VCKV0002" + bytes_.substr(8)), ErrorCode::kInvalidArgument, "this version");
  ExpectRefused(Read(bytes_, {.model = std::string(64, 'b'), .numerics = 1}),
                ErrorCode::kInvalidArgument, "another model");
  ExpectRefused(Read(bytes_, {.model = kKey.model, .numerics = 2}), ErrorCode::kInvalidArgument,
                "revision 1, this build computes revision 2");
  Kv read(kShape);
  EXPECT_EQ(ReadKvFile(folder_.Path("absent"), kKey, read.full).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReadKvFile(folder_.Path(""), kKey, read.full).error().code,
            ErrorCode::kInvalidArgument);
  const std::string pipe = folder_.Path("pipe");  // nobody writes to it
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadKvFile(pipe, kKey, read.full).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(WriteKvFile(pipe, kKey, {}, read.full).has_value());
}

TEST_F(KvFileErrors, OtherFilesAreNotReplaced) {
  Rng rng(4);
  Kv other(kShape);
  Fill(rng, other.full, 5);
  folder_.Write("kv", "a report that somebody still needs");
  const Status refused = WriteKvFile(path_, kKey, TextOf(5), other.full);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadBytes(path_), "a report that somebody still needs");
  for (const std::string& ours : {bytes_, std::string(), bytes_.substr(0, 5)}) {
    folder_.Write("kv", ours);
    EXPECT_TRUE(WriteKvFile(path_, kKey, TextOf(5), other.full).has_value());
  }
}

TEST_F(KvFileErrors, APoolThatCannotHoldItSaysSo) {
  EXPECT_TRUE(Read(bytes_, kKey, 2).has_value());
  const auto result = Read(bytes_, kKey, 1);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace vericache::store
