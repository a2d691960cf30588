// A file of kept KV, as of a prompt cache or a saved conversation, is refused and leaves the pool
// as it was, or gives a KV that holds its tokens.
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

}  // namespace

bool RunOne(std::span<const uint8_t> input) {
  const MemoryFile file(input);
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
  return true;
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
