#include "compress/few_bits.h"

#include <string>

#include "compress/per_head.h"
#include "kv/packed_run.h"

namespace vericache::compress {
namespace {

kernels::KvFormat FormatOf(int bits) {
  if (bits == 8) return kernels::KvFormat::kQ8;
  return bits == 4 ? kernels::KvFormat::kQ4 : kernels::KvFormat::kQ2;
}

class FewBits final : public Compressor {
 public:
  FewBits(const FewBitsKind& kind, Parameters& parameters)
      : kind_(kind),
        format_(FormatOf(parameters.Choice("bits", 4, {8, 4, 2}))),
        spec_(parameters.Spec()) {}

  Traits GetTraits() const override { return {.name = kind_.name, .is_final = true}; }
  std::string Spec() const override { return spec_; }

  // Cost: O(n * d) per head; O(n * d * log d) if it rotates.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    const kv::RunFormat run{.format = format_, .head_dim = job.source->Shape().head_dim};
    if (!run.IsPossible()) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "{} cannot pack heads of {} dims: bits=8 packs multiples of 4, bits=4 of 8, "
                       "bits=2 of 16",
                       spec_, run.head_dim);
    }
    return PackHeads(job, team, [&](const HeadJob& head) {
      const kv::HeadSlots slots = head.view.GatherAll(*job.kernels);
      return kind_.is_rotated ? kv::PackRotatedHead(slots, format_) : kv::PackHead(slots, format_);
    });
  }

 private:
  FewBitsKind kind_;
  kernels::KvFormat format_;
  std::string spec_;
};

}  // namespace

std::unique_ptr<Compressor> MakeFewBits(const FewBitsKind& kind, Parameters& parameters) {
  return std::make_unique<FewBits>(kind, parameters);
}

}  // namespace vericache::compress
