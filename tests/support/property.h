// Property tests: a body that runs over many seeds and, when it fails, says which.
//
//   PROPERTY(BlockPool, KeepsEveryBlockInOneState, 30) { const int n = rng.In(1, 9); ... }
//
// Seeds are fixed, so a run repeats. VERICACHE_SEED=N replays one; VERICACHE_CASES=N runs N times
// as many (for long runs by hand). The first failing seed stops the test.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <vector>

namespace vericache::testing_support {

// splitmix64: small, and the same on every machine, unlike the distributions of <random>.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Uniform in [low, high].
  int In(int low, int high) {
    const auto span = static_cast<uint64_t>(int64_t{high} - low + 1);
    return static_cast<int>(low + static_cast<int64_t>(Next() % span));
  }
  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  bool Chance(double probability) { return Unit() < probability; }
  // Roughly normal: the sum of four uniforms, centred, of variance 1.
  float Normal() {
    const double sum = Unit() + Unit() + Unit() + Unit();
    return static_cast<float>((sum - 2.0) * 1.7320508);
  }
  template <typename T>
  T OneOf(std::initializer_list<T> choices) {
    return *(choices.begin() + In(0, static_cast<int>(choices.size()) - 1));
  }

 private:
  uint64_t state_;
};

template <typename Body>
void RunProperty(int n_cases, Body body) {
  std::vector<uint64_t> seeds;
  if (const char* replay = std::getenv("VERICACHE_SEED")) {
    seeds.push_back(std::strtoull(replay, nullptr, 10));
  } else {
    const char* factor = std::getenv("VERICACHE_CASES");
    const int n_seeds = n_cases * (factor != nullptr ? std::atoi(factor) : 1);
    for (int i = 0; i < n_seeds; ++i) seeds.push_back(static_cast<uint64_t>(1000 + i));
  }
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(::testing::Message() << "replay with VERICACHE_SEED=" << seed);
    Rng rng(seed);
    body(rng);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace vericache::testing_support

#define PROPERTY(suite, name, n_cases)                                             \
  static void suite##_##name##_Property(::vericache::testing_support::Rng& rng);   \
  TEST(suite, name) {                                                              \
    ::vericache::testing_support::RunProperty(n_cases, suite##_##name##_Property); \
  }                                                                                \
  static void suite##_##name##_Property(::vericache::testing_support::Rng& rng)
