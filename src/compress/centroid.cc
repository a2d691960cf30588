// CentroidKV: merge slots with similar keys into weighted centroids, a few at a time.
//
//   while n > budget, j = 0, 1, ...:
//     protect the first `sinks` and the last `recent` slots; cut the middle into chunks
//     match every a with its best b (chunk_matching.h)
//     merge the best ceil(r_j * |A|) pairs, r_j = max(rmin, r - (job.round + j) * dr),
//       but no more than n - budget
//   attention adds log2(degree) to a centroid's score: the mass of the tokens it stands for
//
// Runs at the end of prefill over the full KV, then every time the draft's tail is folded in, over
// the draft KV: its body with the degrees so far, and exact rows. Merging is irreversible, so only
// verified tokens are ever read. The budget counts slots against tokens seen, and the last round
// merges exactly what is over it, so that it holds however long the sequence grows. Where chunks
// cannot give enough pairs, rounds go on: as long as two slots are not protected some chunk has a
// pair. Two cases end above the budget: one that holds no more than the protected slots, by one
// slot; and rmin = 0, where a share that has fallen to 0 ends all merging.
//
// What the paper leaves open is ours: the ranking spans all chunks of a head, a centroid keeps the
// slot and position of its b, r counts against A, and the defaults are the small selective rounds
// that our measurements prefer to few large ones. Keys are matched as they are stored, after RoPE,
// each head for itself.
//
// To be compared with the defaults: `split` parts chunks otherwise (with `random` a round may find
// no pair, and merging ends there); `of=middle` takes r of all that may merge, at most all pairs;
// `degree=off` forgets at the end what a slot stands for: no term in attention, and what was merged
// counts as dropped.
// Source: Hu et al., "CentroidKV" (arXiv 2506.11418).

#include <algorithm>
#include <cmath>
#include <utility>

#include "compress/budget.h"
#include "compress/chunk_matching.h"
#include "compress/method.h"
#include "compress/per_head.h"

namespace vericache::compress {
namespace {

constexpr int kMaxProtected = 1 << 20;  // slots

// r over the rounds of a request's life.
struct Annealing {
  double first = 0.25;
  double fall = 0.025;  // per round
  double floor = 0.1;

  double At(int round) const { return std::max(floor, first - round * fall); }
};

class Centroid final : public Compressor {
 public:
  explicit Centroid(Parameters& parameters)
      : budget_{.keep = parameters.Share("keep", 0.5),
                .n_sinks = parameters.Int("sinks", {.preset = 4, .low = 0, .high = kMaxProtected}),
                .n_recent =
                    parameters.Int("recent", {.preset = 64, .low = 0, .high = kMaxProtected}),
                .division = ReadDivision(parameters, false)},
        chunk_(parameters.Int("chunk", {.preset = 64, .low = 2, .high = 4096})),
        annealing_{.first = parameters.Real("r", {.preset = 0.25}),
                   .fall = parameters.Real("dr", {.preset = 0.025}),
                   .floor = parameters.Real("rmin", {.preset = 0.1})},
        split_(static_cast<Split>(parameters.Word("split", {"alternate", "halves", "random"}))),
        is_of_middle_(parameters.Word("of", {"a", "middle"}) == 1),
        has_degrees_(parameters.Word("degree", {"on", "off"}) == 0),
        spec_(parameters.Spec()) {}

  Traits GetTraits() const override { return {.name = "centroid", .refresh = Refresh::kFromDraft}; }
  std::string Spec() const override { return spec_; }

  // Cost: O(n * chunk * d) per round and head, about 9 rounds to halve a KV.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    return PackHeads(job, team, [&](const HeadJob& head) {
      const HeadBudget budget = budget_.For(
          {.layer = head.layer, .n_layers = job.source->Shape().n_layers}, job.end.value);
      kv::HeadSlots slots = head.view.GatherAll(*job.kernels);
      Merge(job, budget, slots);
      if (!has_degrees_) std::fill(slots.degrees.begin(), slots.degrees.end(), 1);
      return kv::PackHead(slots, kernels::KvFormat::kI16);
    });
  }

 private:
  void Merge(const Job& job, const HeadBudget& budget, kv::HeadSlots& slots) const {
    kv::HeadSlots merged(slots.head_dim);
    for (int round = job.round; slots.Count() > budget.n_slots; ++round) {
      const Middle middle{.begin = budget.n_sinks,
                          .end = slots.Count() - budget.n_recent,
                          .chunk = chunk_,
                          .split = split_,
                          .round = round};
      std::vector<MergePair> pairs = MatchChunks(slots, middle);
      const int n_matched = static_cast<int>(pairs.size());
      const double share =
          annealing_.At(round) * (is_of_middle_ ? middle.end - middle.begin : n_matched);
      const int n_pairs =
          std::min({slots.Count() - budget.n_slots, n_matched, static_cast<int>(std::ceil(share))});
      if (n_pairs == 0) return;
      MergePairs(slots, BestPairs(std::move(pairs), n_pairs), *job.kernels, merged);
      std::swap(slots, merged);
    }
  }

  Budget budget_;
  int chunk_;
  Annealing annealing_;
  Split split_;
  bool is_of_middle_;  // r counts against the middle, not against A
  bool has_degrees_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeCentroid(Parameters& parameters) {
  return std::make_unique<Centroid>(parameters);
}

}  // namespace

extern const Method kCentroid;
const Method kCentroid{.name = "centroid",
                       .summary = "merges similar tokens into weighted centroids (CentroidKV)",
                       .make = MakeCentroid};

}  // namespace vericache::compress
