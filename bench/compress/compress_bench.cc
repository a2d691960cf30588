// Time to compress a KV of SmolLM2-135M's shape (30 layers, 3 KV heads of 64) on two threads, by
// method and length. Content is smooth random rows: clustering does as many rounds as on text.
//
// Read against one prefill of the same tokens: 8k tokens of SmolLM2 take some 10 s on two cores.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "compress/registry.h"
#include "kernels/kernels.h"
#include "kv/full_kv.h"
#include "kv/i16_slots.h"

namespace vericache {
namespace {

constexpr kv::KvShape kShape{.n_layers = 30, .n_kv_heads = 3, .head_dim = 64};
constexpr int kGroup = 3;
constexpr int kWindow = 256;  // the longest that a method asks for

// Deterministic values in [-1, 1).
class Noise {
 public:
  float Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<int64_t>(state_) >> 40) * 0x1p-23f;
  }

 private:
  uint64_t state_ = 1;
};

struct Source {
  std::unique_ptr<kv::BlockPool> pool;
  std::unique_ptr<kv::FullKv> full;
  compress::Hints hints;
};

void WriteRows(kv::FullKv& full, int n_tokens, const kernels::KernelTable& kernels) {
  Noise noise;
  float key[64] = {};
  float value[64] = {};
  int16_t key_codes[64];
  int16_t value_codes[64];
  bool is_finite = true;
  for (int layer = 0; layer < kShape.n_layers; ++layer) {
    for (int head = 0; head < kShape.n_kv_heads; ++head) {
      for (int row = 0; row < n_tokens; ++row) {
        for (float& x : key) x = 0.9f * x + 0.6f * noise.Next();
        for (float& x : value) x = noise.Next();
        const float key_step = kernels.encode_key(key, 64, key_codes, &is_finite);
        const float value_step = kernels.encode_value(value, 64, value_codes, &is_finite);
        kv::WriteI16Slot(full.NewRow(layer, head, row), 64,
                         {.key = key_codes,
                          .value = value_codes,
                          .key_step = key_step,
                          .value_step = value_step});
      }
    }
  }
}

Source MakeSource(int n_tokens, const kernels::KernelTable& kernels) {
  Source source;
  source.pool = std::make_unique<kv::BlockPool>(
      kShape, kv::FullKvBytesPerToken(kShape) * static_cast<size_t>(n_tokens + kv::kBlockTokens));
  source.full = std::make_unique<kv::FullKv>(*source.pool);
  if (!source.full->Reserve(n_tokens).has_value()) std::abort();
  WriteRows(*source.full, n_tokens, kernels);
  source.full->Commit(n_tokens);
  compress::WindowQueries& window = source.hints.window;
  window = {.n_layers = kShape.n_layers,
            .n_heads = kShape.n_kv_heads * kGroup,
            .head_dim = 64,
            .positions = {},
            .q = {}};
  for (int i = n_tokens - kWindow; i < n_tokens; ++i) window.positions.emplace_back(i);
  Noise noise;
  for (int layer = 0; layer < kShape.n_layers; ++layer) {
    auto& q = window.q.emplace_back(static_cast<size_t>(kWindow * window.n_heads * 64));
    for (float& x : q) x = noise.Next();
  }
  return source;
}

void Compress(benchmark::State& state, const std::string& spec) {
  const kernels::KernelTable& kernels = *kernels::AvailableKernels().back();
  const auto n_tokens = static_cast<int>(state.range(0));
  const Source source = MakeSource(n_tokens, kernels);
  const auto compressor = compress::MakeCompressor(spec).value();
  ThreadTeam team(2);
  const compress::Job job{.source = source.full.get(),
                          .hints = &source.hints,
                          .end = Position{n_tokens},
                          .kernels = &kernels};
  size_t packed_bytes = 0;
  for (auto _ : state) {
    const auto packed = compressor->Compress(job, team);
    packed_bytes = packed->Bytes();
  }
  state.counters["share_of_bytes"] =
      static_cast<double>(packed_bytes) / static_cast<double>(source.full->TokenBytes());
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * n_tokens);
}

}  // namespace
}  // namespace vericache

int main(int argc, char** argv) {
  for (const char* spec :
       {"identity", "streaming:keep=0.25", "snapkv:keep=0.25", "snapkv:keep=0.25,budget=head",
        "h2o:keep=0.25", "tova:keep=0.25", "expected:keep=0.25", "knorm:keep=0.25",
        "keydiff:keep=0.25", "merge:keep=0.25", "d2o:keep=0.25", "kivi:bits=8", "kivi:bits=4",
        "kivi:bits=2", "rotated:bits=4", "centroid:keep=0.5", "centroid:keep=0.25",
        "snapkv:keep=0.25+kivi:bits=4", "centroid:keep=0.5+kivi:bits=4"}) {
    benchmark::RegisterBenchmark((std::string("BM_Compress/") + spec).c_str(), vericache::Compress,
                                 spec)
        ->ArgName("tokens")
        ->Arg(1024)
        ->Arg(8192)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
