#include "compress/chain.h"

#include <algorithm>
#include <string>
#include <utility>

namespace vericache::compress {
namespace {

// Stages run front to back; each but the last leaves its slots as a packed KV that the next reads.
//
// What the stages are together: a chain needs what any stage needs, is query-agnostic or exact only
// if all are, and ends its bodies where every stage can. One stage that accumulates over refreshes
// (kFromDraft) makes the chain accumulate: the others then see the slots left in the draft, with
// their degrees, and budgets count tokens seen, so the chain keeps its size. A packing last stage
// means that the next refresh starts from dequantised slots: values, packed one by one, do not
// change again; a key takes one more rounding whenever merging moved its group. That costs a little
// acceptance over a long life, never text.
class Chain final : public Compressor {
 public:
  explicit Chain(std::vector<std::unique_ptr<Compressor>> stages) : stages_(std::move(stages)) {
    traits_ = stages_.front()->GetTraits();
    for (size_t i = 0; i < stages_.size(); ++i) {
      const Traits stage = stages_[i]->GetTraits();
      name_ += fmt::format("{}{}", i == 0 ? "" : "+", stage.name);
      if (i > 0) Join(stage);
    }
  }

  Traits GetTraits() const override {
    Traits traits = traits_;
    traits.name = name_;
    return traits;
  }

  std::string Spec() const override {
    std::string spec = stages_.front()->Spec();
    for (size_t i = 1; i < stages_.size(); ++i) spec.append("+").append(stages_[i]->Spec());
    return spec;
  }

  // Cost: the sum of the stages', each on the slots the one before left.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    Job stage_job = job;
    kv::PackedKv packed;
    for (const auto& stage : stages_) {
      auto result = stage->Compress(stage_job, team);
      VC_RETURN_IF_ERROR(result);
      packed = std::move(*result);
      stage_job.source = &packed;
    }
    return packed;
  }

 private:
  void Join(const Traits& stage) {
    traits_.version += stage.version;  // rises when any stage's does
    if (stage.needs != Needs::kNothing) traits_.needs = stage.needs;
    traits_.n_window = std::max(traits_.n_window, stage.n_window);
    traits_.is_query_agnostic = traits_.is_query_agnostic && stage.is_query_agnostic;
    traits_.is_ragged = traits_.is_ragged || stage.is_ragged;
    traits_.is_exact = traits_.is_exact && stage.is_exact;
    traits_.body_grain = std::max(traits_.body_grain, stage.body_grain);
    if (stage.refresh == Refresh::kFromDraft) traits_.refresh = Refresh::kFromDraft;
    traits_.is_final = stage.is_final;
  }

  std::vector<std::unique_ptr<Compressor>> stages_;
  std::string name_;
  Traits traits_;
};

}  // namespace

Result<std::unique_ptr<Compressor>> MakeChain(std::vector<std::unique_ptr<Compressor>> stages) {
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    if (!stages[i]->GetTraits().is_final) continue;
    return MakeError(ErrorCode::kInvalidArgument,
                     "{} must come last in a chain: what it packs is not compressed again",
                     stages[i]->GetTraits().name);
  }
  return std::make_unique<Chain>(std::move(stages));
}

}  // namespace vericache::compress
