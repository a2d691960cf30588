// StreamingLLM: keep the first tokens (attention sinks) and the newest ones; drop the middle.
//
// The simplest method and the yardstick of the others: no scores, no queries, O(kept) work. Keys
// stay where RoPE put them; the original re-numbers positions inside the cache, which would change
// every key at every step.
// Source: Xiao et al., "Efficient Streaming Language Models with Attention Sinks", section 3.2.

#include <numeric>
#include <vector>

#include "compress/budget.h"
#include "compress/method.h"
#include "compress/per_head.h"

namespace vericache::compress {
namespace {

// The first n_sinks and the last n_slots - n_sinks of n.
std::vector<int> FirstAndLast(int n, const HeadBudget& budget) {
  std::vector<int> kept(static_cast<size_t>(std::min(n, budget.n_slots)));
  std::iota(kept.begin(), kept.end(), 0);
  const int n_dropped = n - static_cast<int>(kept.size());
  const auto first_recent = kept.begin() + std::min(budget.n_sinks, static_cast<int>(kept.size()));
  for (auto it = first_recent; it != kept.end(); ++it) *it += n_dropped;
  return kept;
}

class Streaming final : public Compressor {
 public:
  explicit Streaming(Parameters& parameters)
      : budget_{.keep = parameters.Share("keep", 0.5),
                .n_sinks = parameters.Int("sinks", {.preset = 4, .low = 0, .high = 4096}),
                .division = ReadDivision(parameters, false)},
        spec_(parameters.Spec()) {}

  Traits GetTraits() const override { return {.name = "streaming"}; }
  std::string Spec() const override { return spec_; }

  // Cost: O(kept * d) per head, one copy.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    return PackHeads(job, team, [&](const HeadJob& head) {
      const HeadBudget budget = budget_.For(
          {.layer = head.layer, .n_layers = job.source->Shape().n_layers}, job.end.value);
      const std::vector<int> kept = FirstAndLast(head.view.Count(), budget);
      return kv::PackHead(head.view.Gather(kept, *job.kernels), kernels::KvFormat::kI16);
    });
  }

 private:
  Budget budget_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeStreaming(Parameters& parameters) {
  return std::make_unique<Streaming>(parameters);
}

}  // namespace

extern const Method kStreaming;
const Method kStreaming{.name = "streaming",
                        .summary = "keeps the first tokens and the newest (StreamingLLM)",
                        .make = MakeStreaming};

}  // namespace vericache::compress
