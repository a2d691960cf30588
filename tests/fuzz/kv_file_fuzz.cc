// A file of kept KV, as of a prompt cache or a saved conversation, is refused and leaves the pool
// as it was, or gives a KV that holds its tokens. Each is tried with checksums that fit, too: what
// follows them is then reached.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "base/check.h"
#include "store/kv_file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/kv_model.h"

namespace vericache::fuzz {
namespace {

const store::KvFileKey kKey{.model = std::string(64, 'a'), .numerics = 1};
constexpr kv::KvShape kShape{.n_layers = 1, .n_kv_heads = 1, .head_dim = 16};
constexpr int kBlocks = 8;

kv::BlockPool MakePool() { return {kShape, kBlocks * kv::BlockLayout(kShape).Bytes()}; }

// Where a header has its counts and its checksum (store/kv_file.cc).
constexpr size_t kTokenCountAt = 88;
constexpr size_t kNoteBytesAt = 92;
constexpr size_t kChecksumAt = 96;
constexpr size_t kHeaderBytes = 104;

size_t CountAt(const std::string& file, size_t at) {
  uint32_t count = 0;
  std::memcpy(&count, file.data() + at, sizeof(count));
  return count;
}

void PutChecksum(std::string& file, size_t at, uint64_t checksum) {
  std::memcpy(file.data() + at, &checksum, sizeof(checksum));
}

std::string Sealed(std::string_view input) {
  std::string file(input);
  if (file.size() < kHeaderBytes) return file;
  const size_t n_note = CountAt(file, kNoteBytesAt);
  const size_t n_ids = CountAt(file, kTokenCountAt) * sizeof(TokenId);
  size_t at = kHeaderBytes + n_note + n_ids;
  if (at > file.size()) return file;
  PutChecksum(file, kChecksumAt, 0);
  uint64_t seed = XXH3_64bits(file.data(), kHeaderBytes);
  seed = XXH3_64bits_withSeed(file.data() + kHeaderBytes, n_note, seed);
  seed = XXH3_64bits_withSeed(file.data() + kHeaderBytes + n_note, n_ids, seed);
  PutChecksum(file, kChecksumAt, seed);
  const size_t n_block = kv::BlockLayout(kShape).Bytes();
  for (; at + n_block + sizeof(seed) <= file.size(); at += n_block + sizeof(seed)) {
    PutChecksum(file, at + n_block, XXH3_64bits_withSeed(file.data() + at, n_block, ++seed));
  }
  return file;
}

bool Read(std::string_view input) {
  const MemoryFile file({reinterpret_cast<const uint8_t*>(input.data()), input.size()});
  kv::BlockPool pool = MakePool();
  kv::FullKv full(pool);
  const auto text = store::ReadKvFile(file.Path(), kKey, full);
  if (text) {
    VC_CHECK(full.Length() == static_cast<int>(text->tokens.size()));
  } else {
    VC_CHECK(!text.error().message.empty() && full.Length() == 0);
    full.Truncate(0);
    VC_CHECK(pool.FreeCount() == pool.Capacity());
  }
  return text.has_value();
}

}  // namespace

bool RunOne(std::span<const uint8_t> input) {
  const bool is_taken = Read(AsText(input));
  VC_CHECK(Read(Sealed(AsText(input))) || !is_taken);
  return is_taken;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const int n_tokens : {1, 300}) {
    kv::BlockPool pool = MakePool();
    kv::FullKv full(pool);
    testing_support::Rng rng(5);
    testing_support::KvModel model(1);
    VC_CHECK(full.Reserve(n_tokens).has_value());
    for (int row = 0; row < n_tokens; ++row) testing_support::WriteModelRow(rng, full, row, model);
    full.Commit(n_tokens);
    store::KvFileText text{.tokens = {}, .note = "[{\"role\": \"user\", \"content\": \"Hi\"}]"};
    for (int i = 0; i < n_tokens; ++i) text.tokens.emplace_back(i);
    const testing_support::TempFolder folder;
    VC_CHECK(store::WriteKvFile(folder.Path("kv"), kKey, text, full).has_value());
    seeds.push_back(testing_support::ReadBytes(folder.Path("kv")));
  }
  return seeds;
}

}  // namespace vericache::fuzz
