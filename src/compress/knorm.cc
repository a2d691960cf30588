// Knorm: keep the keys of smallest norm.
//
//   s[t] = -|k_t|,   k [n, d] after RoPE
//
// Attention tends to rest on keys of small norm; nothing but the cached keys is looked at.
// Source: Devoto et al., "A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression";
//         KnormPress of kvpress, which protects no tokens: the sinks are ours.

#include <algorithm>
#include <limits>
#include <vector>

#include "compress/keep_best.h"
#include "compress/lengths.h"
#include "compress/method.h"

namespace vericache::compress {
namespace {

std::vector<float> MinusNorms(const kv::HeadSlots& slots) {
  std::vector<float> scores;
  scores.reserve(static_cast<size_t>(slots.Count()));
  for (int slot = 0; slot < slots.Count(); ++slot) {
    scores.push_back(-static_cast<float>(
        std::min(KeyLength(slots, slot), double{std::numeric_limits<float>::max()})));
  }
  return scores;
}

class Knorm final : public Compressor {
 public:
  explicit Knorm(Parameters& parameters)
      : budget_{.keep = parameters.Share("keep", 0.5),
                .n_sinks = parameters.Int("sinks", {.preset = 4, .low = 0, .high = 4096}),
                .division = ReadDivision(parameters, true)},
        spec_(parameters.Spec()) {}

  Traits GetTraits() const override {
    return {.name = "knorm", .is_ragged = budget_.division == Division::kHead};
  }
  std::string Spec() const override { return spec_; }

  // Cost: O(n * d) per head.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    return KeepBest(job, team, budget_, ScoreHeads(job, team, [&](const HeadJob& head) {
                      return MinusNorms(head.view.GatherAll(*job.kernels));
                    }));
  }

 private:
  Budget budget_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeKnorm(Parameters& parameters) {
  return std::make_unique<Knorm>(parameters);
}

}  // namespace

extern const Method kKnorm;
const Method kKnorm{
    .name = "knorm", .summary = "keeps the keys of smallest norm (Knorm)", .make = MakeKnorm};

}  // namespace vericache::compress
