// Merge on evict: keep what another method keeps, and blend the values it evicts into what it
// keeps.
//
//   e -> t     the kept token t whose key is most like the key of the evicted e
//   w_e        = max(cos(k_e, k_t), 0) * |v_e| / (|v_e| + |v_t|)
//   v_t        = (v_t + sum of w_e * v_e) / (1 + sum of w_e);   k_t stays, k and v [n, d]
//
// Which tokens stay, and what may be asked of the forward pass, is the base method's to say.
// Source: MergingPress of kvpress, after Bolya et al., "Token Merging" (arXiv 2210.09461); there t
//         is sought among all kept tokens, here among the `reach` nearest to each side.

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "compress/budget.h"
#include "compress/folding.h"
#include "compress/lengths.h"
#include "compress/method.h"
#include "compress/registry.h"

namespace vericache::compress {
namespace {

class Merge final : public Compressor {
 public:
  explicit Merge(Parameters& parameters) {
    // Methods that evict by score, and offer every budget.
    const std::initializer_list<std::string_view> bases = {"keydiff", "knorm", "snapkv", "h2o",
                                                           "expected"};
    const double keep = parameters.Share("keep", 0.5);
    const int base = parameters.Word("base", bases);
    const Division division = ReadDivision(parameters, true);
    reach_ = parameters.Int("reach", {.preset = 64, .low = 1, .high = 1 << 20});
    spec_ = parameters.Spec();
    auto made = MakeCompressor(
        fmt::format("{}:keep={},budget={}", bases.begin()[base], keep, NameOf(division)));
    VC_CHECK(made.has_value(), "{}", made.error().message);
    base_ = *std::move(made);
  }

  Traits GetTraits() const override {
    Traits traits = base_->GetTraits();
    traits.name = "merge";
    return traits;
  }
  std::string Spec() const override { return spec_; }

  // Cost: that of the base, and O(evicted * reach * d) per head.
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
    for (auto& fold : folds) {
      const double evicted = ValueLength(slots, fold.evicted);
      const double both = evicted + ValueLength(slots, kept[static_cast<size_t>(fold.kept)]);
      fold.weight = fold.cosine > 0 && both > 0 ? fold.cosine * (evicted / both) : 0.0;
    }
    return kv::PackHead(Blended(slots, kept, folds, {}, *job.kernels), kernels::KvFormat::kI16);
  }

  int reach_ = 0;
  std::string spec_;
  std::unique_ptr<Compressor> base_;
};

std::unique_ptr<Compressor> MakeMerge(Parameters& parameters) {
  return std::make_unique<Merge>(parameters);
}

}  // namespace

extern const Method kMerge;
const Method kMerge{.name = "merge",
                    .summary = "evicts as its base does, and blends evicted values into kept ones",
                    .make = MakeMerge};

}  // namespace vericache::compress
