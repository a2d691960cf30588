// The whole forward pass: rows by depth, on a real model. Model: VERICACHE_BENCH_MODEL, a GGUF
// path. Threads: VERICACHE_BENCH_THREADS (2). Path: VERICACHE_BENCH_ISA (auto).
//
// Each benchmark reports the best iteration (best_ms) and, of an extra measured pass, the
// milliseconds of each part, the mean over threads. Times on a busy machine mean little: compare
// the bests of interleaved runs. Choose with --benchmark_filter=depth:2048.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "kv/full_kv.h"
#include "model/forward.h"

namespace vericache::model {
namespace {

constexpr int kMaxRows = 512;
constexpr int kContext = 8192;

std::string Setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

template <typename T>
T OrExit(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

// A model and one sequence that grows to each depth in turn.
class Bench {
 public:
  Bench()
      : team_(std::stoi(Setting("VERICACHE_BENCH_THREADS", "2"))),
        model_(OrExit(Model::Load(Setting("VERICACHE_BENCH_MODEL", ""), team_))),
        kernels_(*OrExit(kernels::SelectKernels(Setting("VERICACHE_BENCH_ISA", "auto")))),
        pool_(model_->Config().Kv(), PoolBytes()),
        kv_(pool_),
        pass_(*model_, kernels_, team_, kMaxRows) {
    for (int i = 0; i < kContext; ++i) {
      tokens_.push_back(TokenId(i * 7919 % model_->Config().n_vocab));
    }
    if (!kv_.Reserve(kContext)) std::exit(1);
  }

  // Requires: depths ask in ascending order, or start over.
  void GrowTo(int depth) {
    if (kv_.Length() > depth) kv_.Truncate(depth);
    if (!kv_.Reserve(kContext)) std::exit(1);
    while (kv_.Length() < depth) {
      const int n_rows = std::min(256, depth - kv_.Length());
      Run(n_rows, LogitRows::kNone);
      kv_.Commit(n_rows);
    }
  }
  void Run(int n_rows, LogitRows logits) {
    const RowGroup group{.tokens = std::span(tokens_).subspan(static_cast<size_t>(kv_.Length()),
                                                              static_cast<size_t>(n_rows)),
                         .first_position = Position(kv_.Length()),
                         .kv = &kv_,
                         .logits = logits};
    benchmark::DoNotOptimize(pass_.Run({&group, 1}));
  }
  Pass& GetPass() { return pass_; }

 private:
  size_t PoolBytes() const {
    return static_cast<size_t>(kContext / kv::kBlockTokens) *
           static_cast<size_t>(model_->Config().n_layers) *
           kv::BlockLayout(model_->Config().Kv()).Bytes();
  }

  ThreadTeam team_;
  std::unique_ptr<Model> model_;
  const kernels::KernelTable& kernels_;
  kv::BlockPool pool_;
  kv::FullKv kv_;
  Pass pass_;
  std::vector<TokenId> tokens_;
};

void BM_Forward(benchmark::State& state) {
  static Bench bench;
  const int depth = static_cast<int>(state.range(0));
  const int n_rows = static_cast<int>(state.range(1));
  // A prefill chunk wants no logits, a verify wants all.
  const LogitRows logits = n_rows > 64 ? LogitRows::kNone : LogitRows::kAll;
  bench.GrowTo(depth);
  double best = 1e9;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    bench.Run(n_rows, logits);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    best = std::min(best, passed.count());
  }
  bench.GetPass().MeasureParts(true);
  bench.Run(n_rows, logits);
  const PassTimes times = bench.GetPass().PartTimes();
  bench.GetPass().MeasureParts(false);
  state.counters["best_ms"] = best * 1e3;
  for (size_t part = 0; part < kPassPartCount; ++part) {
    state.counters[std::string(kPassPartNames[part])] = times.seconds[part] * 1e3;
  }
}

BENCHMARK(BM_Forward)
    ->ArgNames({"depth", "rows"})
    ->ArgsProduct({{8, 2048, 7500}, {1, 8, 16, 32, 64, 256, 512}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MinTime(0.3);

}  // namespace
}  // namespace vericache::model

BENCHMARK_MAIN();
