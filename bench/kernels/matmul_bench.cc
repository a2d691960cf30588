// Matmul of every path, by weight type, shape and rows, on one thread and with quantised rows.
//
// bytes_per_second counts packed weights, which one row at a time must read: its limit is the
// memory or cache they lie in. gmacs counts multiply-adds, the limit of many rows. limit_share
// compares with what this machine does in the same run: reading the same bytes, or register-only
// dots. Filter with --benchmark_filter=avx512/Q4_K; a share of another machine's figures means
// nothing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <string>

#include "kernels/kernels.h"
#include "tests/support/gguf_rows.h"
#include "tests/support/matmul_run.h"

namespace vericache::kernels {
namespace {

using testing_support::GgufRows;
using testing_support::kAllWeightTypes;
using testing_support::Name;
using testing_support::Pack;
using testing_support::RandomActivations;

struct Shape {
  int n;
  int k;
};
// SmolLM2-135M: o, gate or up, down, output; then a square that fits a shared cache.
constexpr Shape kShapes[] = {{576, 576}, {1536, 576}, {576, 1536}, {49152, 576}, {2048, 2048}};

void Quantize(const KernelTable& path, Activations& acts) {
  path.quantize(acts, 0, acts.k / kActBlock);
}

void MultiplyPanels(benchmark::State& state, const KernelTable& path, WeightType type,
                    Shape shape) {
  const auto n_rows = static_cast<int>(state.range(0));
  const PackedMatrix w = Pack(GgufRows(type, shape.n, shape.k, 1));
  const std::vector<float> x = RandomActivations(n_rows, shape.k, 2);
  std::vector<float> y(static_cast<size_t>(n_rows) * static_cast<size_t>(shape.n));
  Activations acts;
  ShapeActivations(acts, x.data(), n_rows, shape.k);
  if (IsQuantized(type)) Quantize(path, acts);
  for (auto _ : state) {
    path.matmul(w, acts, y.data(), static_cast<size_t>(shape.n), 0, w.n_panels);
    benchmark::ClobberMemory();
  }
  const auto n_iterations = static_cast<double>(state.iterations());
  const double n_bytes = static_cast<double>(w.panel_bytes) * w.n_panels;
  const double n_macs = double(n_rows) * shape.n * shape.k;
  state.SetBytesProcessed(static_cast<int64_t>(n_bytes * n_iterations));
  state.counters["gmacs"] =
      benchmark::Counter(n_macs * 1e-9 * n_iterations, benchmark::Counter::kIsRate);
}

void QuantizeRows(benchmark::State& state, const KernelTable& path) {
  const auto n_rows = static_cast<int>(state.range(0));
  const int k = 2048;
  const std::vector<float> x = RandomActivations(n_rows, k, 2);
  Activations acts;
  ShapeActivations(acts, x.data(), n_rows, k);
  for (auto _ : state) {
    Quantize(path, acts);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * n_rows * k * int64_t{sizeof(float)});
}

// What reading costs here: the limit of one row.
void ReadMemory(benchmark::State& state) {
  const auto n_words = static_cast<size_t>(state.range(0)) / sizeof(uint64_t);
  const std::vector<uint64_t> words(n_words, 1);
  for (auto _ : state) {
    std::array<uint64_t, 8> sums{};
    for (size_t i = 0; i + 8 <= n_words; i += 8) {
      for (size_t j = 0; j < 8; ++j) sums[j] ^= words[i + j];
    }
    benchmark::DoNotOptimize(sums);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void Register() {
  benchmark::RegisterBenchmark("BM_ReadMemory", ReadMemory)->Arg(2 << 20)->Arg(256 << 20);
  for (const KernelTable* path : AvailableKernels()) {
    if (path->isa == Isa::kRef) continue;
    const std::string name(path->name);
    benchmark::RegisterBenchmark(("BM_Quantize/" + name).c_str(),
                                 [path](benchmark::State& state) { QuantizeRows(state, *path); })
        ->Arg(1)
        ->Arg(32);
    for (const WeightType type : kAllWeightTypes) {
      for (const Shape shape : kShapes) {
        if (shape.k % BlockLength(type) != 0) continue;
        const std::string full = "BM_Matmul/" + name + "/" + Name(type) + "/" +
                                 std::to_string(shape.n) + "x" + std::to_string(shape.k) + "/rows";
        auto* bench = benchmark::RegisterBenchmark(full.c_str(),
                                                   [path, type, shape](benchmark::State& state) {
                                                     MultiplyPanels(state, *path, type, shape);
                                                   });
        for (const int n_rows : {1, 2, 8, 16, 32, 64}) bench->Arg(n_rows);
        bench->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace vericache::kernels

int main(int argc, char** argv) {
  vericache::kernels::Register();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
