// D2O: keep heavy hitters and the newest tokens; what is evicted joins a kept token if their keys
// are alike enough.
//
//   e -> t   the kept token t whose key is most like the key of the evicted e, u_e = cos(k_e, k_t)
//   tau      = mean of u_e over the evicted tokens of a head; below it, e is lost
//   k_t, v_t = means of t and what joined it, weighted by exp(1) and exp(u_e);   k and v [n, d]
//
// The original lets tau follow a moving average over the steps of decoding; here all that is
// evicted is evicted at once, and its mean is that of one compression. Its shares of the layers, by
// the variance of attention, are what `budget=layer` is for. It protects four sinks as well; here
// tokens stay by the scores of `h2o`, sinks if attention rests on them.
// Source: Wan et al., "D2O: Dynamic Discriminative Operations" (arXiv 2406.13035), sections 3.2 and
//         3.3; there t is sought among all kept tokens, here among the `reach` nearest to each
//         side.

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/exact_math.h"
#include "compress/budget.h"
#include "compress/folding.h"
#include "compress/method.h"
#include "compress/registry.h"

namespace vericache::compress {
namespace {

constexpr double kE = 2.718281828459045235;

// At most the highest: a rounded mean of equal cosines may lie above all of them.
double MeanCosine(std::span<const Fold> folds) {
  double mean = 0.0;
  double highest = -1.0;
  for (const Fold& fold : folds) {
    mean += fold.cosine / static_cast<double>(folds.size());
    highest = std::max(highest, fold.cosine);
  }
  return std::min(mean, highest);
}

class D2o final : public Compressor {
 public:
  explicit D2o(Parameters& parameters) {
    const double keep = parameters.Share("keep", 0.5);
    const double recent = parameters.Real("recent", {.preset = 0.5});
    const int n_window = parameters.Int("window", {.preset = 256, .low = 1, .high = 1024});
    const Division division = ReadDivision(parameters, true);
    reach_ = parameters.Int("reach", {.preset = 64, .low = 1, .high = 1 << 20});
    spec_ = parameters.Spec();
    auto made = MakeCompressor(fmt::format("h2o:keep={},recent={},window={},budget={}", keep,
                                           recent, n_window, NameOf(division)));
    VC_CHECK(made.has_value(), "{}", made.error().message);
    base_ = *std::move(made);
  }

  Traits GetTraits() const override {
    Traits traits = base_->GetTraits();
    traits.name = "d2o";
    return traits;
  }
  std::string Spec() const override { return spec_; }

  // Cost: that of h2o, and O(evicted * reach * d) per head.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    const auto kept = base_->Compress(job, team);
    VC_RETURN_IF_ERROR(kept);
    return PackHeads(job, team, [&](const HeadJob& head) {
      return Merged(job, head, KeptSlots(head, kept->Head(head.layer, head.head)));
    });
  }

 private:
  kv::PackedHead Merged(const Job& job, const HeadJob& head, const std::vector<int>& kept) const {
    const kv::HeadSlots slots = head.view.GatherAll(*job.kernels);
    auto folds = FoldsOf(slots, kept, reach_);
    const double threshold = MeanCosine(folds);
    for (auto& fold : folds) {
      fold.weight = fold.cosine >= threshold ? ExactPow(kE, fold.cosine) : 0.0;
    }
    return kv::PackHead(
        Blended(slots, kept, folds, {.kept_weight = kE, .takes_keys = true}, *job.kernels),
        kernels::KvFormat::kI16);
  }

  int reach_ = 0;
  std::string spec_;
  std::unique_ptr<Compressor> base_;
};

std::unique_ptr<Compressor> MakeD2o(Parameters& parameters) {
  return std::make_unique<D2o>(parameters);
}

}  // namespace

extern const Method kD2o;
const Method kD2o{.name = "d2o",
                  .summary = "keeps heavy hitters and lets similar evicted tokens join them (D2O)",
                  .make = MakeD2o};

}  // namespace vericache::compress
