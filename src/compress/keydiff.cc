// KeyDiff: keep the keys that differ most from the others.
//
//   u_t = k_t / |k_t|,   m = mean of u_t,   s[t] = -cos(k_t, m),   k [n, d] after RoPE
//
// A zero key has u = 0 and score 0, as have all keys if m is zero. A slot that stands for several
// tokens counts as often in the mean.
// Source: Park et al., "KeyDiff: Key Similarity-Based KV Cache Eviction" (arXiv 2504.15364),
//         section 3; KeyDiffPress of kvpress, which protects no tokens: the sinks are ours.

#include <cmath>
#include <vector>

#include "compress/keep_best.h"
#include "compress/lengths.h"
#include "compress/method.h"

namespace vericache::compress {
namespace {

// The mean direction up to a positive factor, of length 1; zero if there is none.
std::vector<double> MeanDirection(const kv::HeadSlots& slots) {
  std::vector<double> mean(static_cast<size_t>(slots.head_dim), 0.0);
  for (int slot = 0; slot < slots.Count(); ++slot) {
    const int16_t* key = slots.KeyCodes(slot);
    const double weight = InverseKeyLength(slots, slot) * slots.degrees[static_cast<size_t>(slot)];
    for (size_t dim = 0; dim < mean.size(); ++dim) mean[dim] += weight * key[dim];
  }
  double square = 0.0;
  for (const double x : mean) square += x * x;
  const double scale = square > 0.0 ? 1.0 / std::sqrt(square) : 0.0;
  for (double& x : mean) x *= scale;
  return mean;
}

std::vector<float> MinusCosines(const kv::HeadSlots& slots) {
  const std::vector<double> mean = MeanDirection(slots);
  std::vector<float> scores;
  scores.reserve(static_cast<size_t>(slots.Count()));
  for (int slot = 0; slot < slots.Count(); ++slot) {
    const int16_t* key = slots.KeyCodes(slot);
    double dot = 0.0;
    for (size_t dim = 0; dim < mean.size(); ++dim) dot += mean[dim] * key[dim];
    scores.push_back(static_cast<float>(-dot * InverseKeyLength(slots, slot)));
  }
  return scores;
}

class KeyDiff final : public Compressor {
 public:
  explicit KeyDiff(Parameters& parameters)
      : budget_{.keep = parameters.Share("keep", 0.5),
                .n_sinks = parameters.Int("sinks", {.preset = 4, .low = 0, .high = 4096}),
                .division = ReadDivision(parameters, true)},
        spec_(parameters.Spec()) {}

  Traits GetTraits() const override {
    return {.name = "keydiff", .is_ragged = budget_.division == Division::kHead};
  }
  std::string Spec() const override { return spec_; }

  // Cost: O(n * d) per head.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    return KeepBest(job, team, budget_, ScoreHeads(job, team, [&](const HeadJob& head) {
                      return MinusCosines(head.view.GatherAll(*job.kernels));
                    }));
  }

 private:
  Budget budget_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeKeyDiff(Parameters& parameters) {
  return std::make_unique<KeyDiff>(parameters);
}

}  // namespace

extern const Method kKeyDiff;
const Method kKeyDiff{.name = "keydiff",
                      .summary = "keeps the keys least like the mean key (KeyDiff)",
                      .make = MakeKeyDiff};

}  // namespace vericache::compress
