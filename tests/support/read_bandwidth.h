// What one thread reads from memory: the limit that benchmarks measure themselves against.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <vector>

namespace vericache::testing_support {

// Bytes per second of the thread's own time, the best of a few passes; measured once per process.
inline double ReadBandwidth() {
  static const double kBandwidth = [] {
    const std::vector<uint64_t> words(size_t{16} << 20, 1);
    double best = 0;
    for (int pass = 0; pass < 5; ++pass) {
      const std::clock_t start = std::clock();
      std::array<uint64_t, 8> sums{};
      for (size_t i = 0; i < words.size(); i += 8) {
        for (size_t j = 0; j < 8; ++j) sums[j] ^= words[i + j];
      }
      volatile uint64_t sink = sums[0] ^ sums[3] ^ sums[7];
      (void)sink;
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      best = std::max(best, static_cast<double>(words.size() * sizeof(uint64_t)) / seconds);
    }
    return best;
  }();
  return kBandwidth;
}

}  // namespace vericache::testing_support
