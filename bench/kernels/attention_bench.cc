// Attention of one layer over 8192 slots, by path, storage format, shape and query tokens, on one
// thread: every KV head and chunk, merged and finished.
//
// bytes_per_second counts codes and scales, which even one token must read, and limit_share is its
// part of what this machine reads from memory, measured in the same run. gmacs counts
// multiply-adds, what limits many tokens. Layers take turns, so that none stays in a cache.
// Choose with --benchmark_filter=avx512/I16.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/kv_layout.h"
#include "tests/support/read_bandwidth.h"

namespace vericache::kernels {
namespace {

constexpr int kContext = 8192;
constexpr size_t kCacheBytes = size_t{160} << 20;  // more than any cache
constexpr int kMaxRows = 96;                       // rows of one pass over a head

struct Shape {
  int n_heads;
  int n_kv_heads;
  int head_dim;

  int Group() const { return n_heads / n_kv_heads; }
};
// SmolLM2-135M, Qwen2.5-0.5B, Qwen2.5-1.5B, Llama-3-8B.
constexpr Shape kShapes[] = {{9, 3, 64}, {14, 2, 64}, {12, 2, 128}, {32, 8, 128}};

const char* Name(KvFormat format) {
  static constexpr const char* kNames[] = {"I16", "Q8", "Q4", "Q2"};
  return kNames[static_cast<size_t>(format)];
}

// KV heads of several layers with random codes; the size of a real cache, not its content.
class RandomCache {
 public:
  RandomCache(KvFormat format, const Shape& shape)
      : format_(format),
        head_dim_(shape.head_dim),
        key_bytes_(KeyBytes(format, shape.head_dim, kContext)),
        n_key_scales_(KeyScaleCount(format, shape.head_dim, kContext)),
        n_value_scales_(ValueScaleCount(format, kContext)) {
    const size_t layer_bytes = static_cast<size_t>(shape.n_kv_heads) * HeadBytes();
    n_heads_ = static_cast<int>(kCacheBytes / layer_bytes + 1) * shape.n_kv_heads;
    codes_ = AlignedBuffer(static_cast<size_t>(n_heads_) * 2 * key_bytes_);
    scales_ = AlignedBuffer(static_cast<size_t>(n_heads_) * (n_key_scales_ + n_value_scales_) * 4);
    std::mt19937 rng(1);
    std::uniform_int_distribution<int> code(-8191, 8191);
    std::vector<int16_t> tile(size_t{1} << 19);
    for (int16_t& x : tile) x = static_cast<int16_t>(code(rng));
    const size_t tile_bytes = tile.size() * sizeof(int16_t);
    for (size_t at = 0; at < codes_.size(); at += tile_bytes) {
      std::memcpy(codes_.data() + at, tile.data(), std::min(tile_bytes, codes_.size() - at));
    }
    std::fill_n(scales_.As<float>(), scales_.size() / 4, 1.0f / 4096);
  }

  int HeadCount() const { return n_heads_; }
  size_t HeadBytes() const { return 2 * key_bytes_ + 4 * (n_key_scales_ + n_value_scales_); }

  // 256 slots of a head, as the blocks of a full KV lie.
  SlotRun Block(int head, int first_slot) const {
    const auto h = static_cast<size_t>(head);
    const std::byte* keys = codes_.data() + h * 2 * key_bytes_;
    const float* scales = scales_.As<float>() + h * (n_key_scales_ + n_value_scales_);
    const size_t offset = KeyBytes(format_, head_dim_, first_slot);
    return {.keys = keys + offset,
            .values = keys + key_bytes_ + offset,
            .key_scales = scales + KeyScaleCount(format_, head_dim_, first_slot),
            .value_scales = scales + n_key_scales_ + ValueScaleCount(format_, first_slot),
            .log_weights = nullptr,
            .n_slots = 256};
  }

 private:
  KvFormat format_;
  int head_dim_;
  size_t key_bytes_;
  size_t n_key_scales_;
  size_t n_value_scales_;
  int n_heads_ = 0;
  AlignedBuffer codes_;
  AlignedBuffer scales_;
};

// Attention of some rows over one head, chunk by chunk.
class HeadPass {
 public:
  HeadPass(const KernelTable& path, KvFormat format, const Shape& shape)
      : path_(path), attention_(path.attention[static_cast<size_t>(format)]), shape_(shape) {
    const auto floats = static_cast<size_t>(kMaxRows * (shape.head_dim + 2)) * sizeof(float);
    queries_ = AlignedBuffer(attention_.query_bytes(kMaxRows, shape.head_dim));
    scratch_ = AlignedBuffer(attention_.scratch_bytes(kMaxRows, shape.head_dim));
    chunk_ = AlignedBuffer(floats);
    total_ = AlignedBuffer(floats);
  }

  void Run(const RandomCache& cache, int head, const QueryRows& rows, float* result) {
    const int n_rows = rows.n_rows;
    attention_.pack_queries(rows, queries_.data());
    float* total_max = total_.As<float>();
    float* total_sum = total_max + kMaxRows;
    float* total_out = total_sum + kMaxRows;
    std::fill_n(total_max, n_rows, -std::numeric_limits<float>::infinity());
    std::fill_n(total_sum, n_rows, 0.0f);
    std::fill_n(total_out, n_rows * shape_.head_dim, 0.0f);
    for (int slot = 0; slot < kContext; slot += kChunkSlots) {
      Attend(cache, head, slot, n_rows);
      const float* chunk_max = chunk_.As<float>();
      for (int row = 0; row < n_rows; ++row) {
        const ptrdiff_t at = static_cast<ptrdiff_t>(row) * shape_.head_dim;
        path_.merge(total_max[row], total_sum[row], total_out + at, chunk_max[row],
                    chunk_max[kMaxRows + row], chunk_max + 2 * kMaxRows + at, shape_.head_dim);
      }
    }
    for (int row = 0; row < n_rows; ++row) {
      const ptrdiff_t at = static_cast<ptrdiff_t>(row) * shape_.head_dim;
      path_.finish(total_sum[row], total_out + at, shape_.head_dim, result + at);
    }
  }

 private:
  void Attend(const RandomCache& cache, int head, int slot, int n_rows) {
    static constexpr auto kAllVisible = [] {
      std::array<int32_t, kMaxRows> visible{};
      visible.fill(kChunkSlots);
      return visible;
    }();
    const SlotRun runs[] = {cache.Block(head, slot), cache.Block(head, slot + 256)};
    const bool is_last = slot + kChunkSlots >= kContext;
    auto* chunk = chunk_.As<float>();
    attention_.chunk({.head_dim = shape_.head_dim,
                      .n_rows = n_rows,
                      .queries = queries_.data(),
                      .runs = runs,
                      .n_visible = kAllVisible.data(),
                      .prefetch = is_last ? nullptr : cache.Block(head, slot + kChunkSlots).keys,
                      .scratch = scratch_.data(),
                      .max = chunk,
                      .sum = chunk + kMaxRows,
                      .out = chunk + 2 * kMaxRows});
  }

  const KernelTable& path_;
  const AttentionKernels& attention_;
  Shape shape_;
  AlignedBuffer queries_, scratch_, chunk_, total_;
};

void AttendLayer(benchmark::State& state, const KernelTable& path, KvFormat format, Shape shape) {
  const auto n_tokens = static_cast<int>(state.range(0));
  const int n_rows = n_tokens * shape.Group();
  const RandomCache cache(format, shape);
  HeadPass pass(path, format, shape);
  std::mt19937 rng(2);
  std::normal_distribution<float> normal;
  std::vector<float> q(static_cast<size_t>(n_rows * shape.head_dim));
  for (float& x : q) x = normal(rng);
  std::vector<float> result(q.size());
  // Even passes of at most kMaxRows rows.
  const int n_passes = (n_rows + kMaxRows - 1) / kMaxRows;
  int head = 0;
  for (auto _ : state) {
    for (int i = 0; i < shape.n_kv_heads; ++i) {
      for (int p = 0; p < n_passes; ++p) {
        const int first = n_rows * p / n_passes;
        pass.Run(cache, head,
                 {.q = q.data(),
                  .token_stride = static_cast<size_t>(shape.Group() * shape.head_dim),
                  .group = shape.Group(),
                  .first_row = first,
                  .n_rows = n_rows * (p + 1) / n_passes - first,
                  .head_dim = shape.head_dim},
                 result.data() + static_cast<ptrdiff_t>(first) * shape.head_dim);
      }
      head = (head + 1) % cache.HeadCount();
    }
    benchmark::ClobberMemory();
  }
  const auto n_iterations = static_cast<double>(state.iterations());
  const double n_bytes = static_cast<double>(cache.HeadBytes()) * shape.n_kv_heads;
  const double n_macs = 2.0 * n_tokens * shape.n_heads * shape.head_dim * kContext;
  state.SetBytesProcessed(static_cast<int64_t>(n_bytes * n_iterations));
  state.counters["limit_share"] = benchmark::Counter(
      n_bytes / testing_support::ReadBandwidth() * n_iterations, benchmark::Counter::kIsRate);
  state.counters["gmacs"] =
      benchmark::Counter(n_macs * 1e-9 * n_iterations, benchmark::Counter::kIsRate);
}

void RegisterAll() {
  for (const KernelTable* path : AvailableKernels()) {
    if (path->isa == Isa::kRef) continue;  // slow by intent
    for (const KvFormat format : {KvFormat::kI16, KvFormat::kQ8, KvFormat::kQ4, KvFormat::kQ2}) {
      for (const Shape& shape : kShapes) {
        const std::string name = "BM_Attend/" + std::string(path->name) + "/" + Name(format) +
                                 "/heads:" + std::to_string(shape.n_heads) + ":" +
                                 std::to_string(shape.n_kv_heads) +
                                 "/dim:" + std::to_string(shape.head_dim) + "/tokens";
        benchmark::RegisterBenchmark(name.c_str(), AttendLayer, *path, format, shape)
            ->Arg(1)
            ->Arg(8)
            ->Arg(32)
            ->Arg(64)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace vericache::kernels

int main(int argc, char** argv) {
  vericache::kernels::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
