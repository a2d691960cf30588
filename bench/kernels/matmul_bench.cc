// Matmul of every path, by weight type, shape and rows, on one thread and with quantised rows.
//
// bytes_per_second counts packed weights, which even one row must read, and limit_share is its part
// of what this machine reads from memory, measured in the same run (above 1: the weights lie in a
// cache). gmacs counts multiply-adds, what limits many rows.
// Choose with --benchmark_filter=avx512/Q4_K.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <ctime>
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

// Bytes that one thread reads from memory per second of its own time, as the benchmarks count it:
// the best of a few passes.
double ReadBandwidth() {
  static const double kBandwidth = [] {
    const std::vector<uint64_t> words(size_t{16} << 20, 1);
    double best = 0;
    for (int pass = 0; pass < 5; ++pass) {
      const std::clock_t start = std::clock();
      std::array<uint64_t, 8> sums{};
      for (size_t i = 0; i < words.size(); i += 8) {
        for (size_t j = 0; j < 8; ++j) sums[j] ^= words[i + j];
      }
      benchmark::DoNotOptimize(sums);
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      best = std::max(best, static_cast<double>(words.size() * sizeof(uint64_t)) / seconds);
    }
    return best;
  }();
  return kBandwidth;
}

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
  const double n_macs = static_cast<double>(n_rows) * shape.n * shape.k;
  state.SetBytesProcessed(static_cast<int64_t>(n_bytes * n_iterations));
  state.counters["limit_share"] =
      benchmark::Counter(n_bytes / ReadBandwidth() * n_iterations, benchmark::Counter::kIsRate);
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

void Register() {
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
