#include "apps/machine_speed.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/aligned_buffer.h"

namespace vericache::apps {
namespace {

constexpr size_t kBandwidthBytes = size_t{256} << 20;
constexpr int kRepeats = 5;

template <typename Function>
double SecondsOf(const Function& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Eight independent sums, so that the additions never wait for each other.
uint64_t SumWords(const uint64_t* words, size_t n_words) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= n_words; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) sums[lane] += words[i + lane];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

double MeasureReadBandwidth(ThreadTeam& team) {
  AlignedBuffer buffer(kBandwidthBytes);
  const int n_words = static_cast<int>(kBandwidthBytes / sizeof(uint64_t));
  auto* words = buffer.As<uint64_t>();
  std::atomic<uint64_t> total{0};  // keeps the sums from being optimised away
  team.Run([&](Member& member) {
    const auto [begin, end] = member.Share(n_words, 512);
    std::memset(words + begin, member.Index() + 1,
                static_cast<size_t>(end - begin) * sizeof(uint64_t));
  });
  double best_s = 1e9;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    best_s = std::min(best_s, SecondsOf([&] {
                        team.Run([&](Member& member) {
                          const auto [begin, end] = member.Share(n_words, 512);
                          total += SumWords(words + begin, static_cast<size_t>(end - begin));
                        });
                      }));
  }
  return static_cast<double>(kBandwidthBytes) / best_s;
}

double MeasureMatmulRate(const kernels::KernelTable& kernels, ThreadTeam& team) {
  constexpr int kSide = 512;  // 280 KB of weights
  constexpr int kRows = 64;
  constexpr int kPasses = 20;
  kernels::PackedMatrix weights =
      kernels::ShapePackedMatrix(kernels::WeightType::kQ8_0, kSide, kSide);
  const std::vector<std::byte> gguf(static_cast<size_t>(kSide) *
                                    kernels::GgufRowBytes(kernels::WeightType::kQ8_0, kSide));
  kernels::PackPanels(weights, gguf.data(), 0, weights.n_panels);
  const std::vector<float> x(static_cast<size_t>(kRows) * kSide, 1.0f);
  std::vector<float> y(x.size());
  kernels::Activations acts;
  kernels::ShapeActivations(acts, x.data(), kRows, kSide);
  kernels.quantize(acts, 0, kSide / kernels::kActBlock);
  double best_s = 1e9;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    best_s = std::min(best_s, SecondsOf([&] {
                        team.Run([&](Member& member) {
                          const auto [begin, end] = member.Share(weights.n_panels);
                          for (int pass = 0; pass < kPasses && begin < end; ++pass) {
                            kernels.matmul(weights, acts, y.data() + begin * kernels::kPanelColumns,
                                           kSide, begin, end);
                          }
                        });
                      }));
  }
  return static_cast<double>(kPasses) * kRows * kSide * kSide / best_s;
}

}  // namespace vericache::apps
