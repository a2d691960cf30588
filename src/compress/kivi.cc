// KIVI: every slot kept, in 8, 4 or 2 bits; keys per channel, values per token.
//
//   code = round((x - zero) / scale),  zero = min,  scale = (max - min) / (2^bits - 1)
//
// A key channel's minimum and maximum are taken over 64 consecutive slots, because key outliers sit
// in channels; a value's over the whole head of its token. The original groups values by 32
// channels of the concatenated heads; one group per head (64 to 128 channels) costs half the scales
// and lets the weighted sum stay an integer dot. Recent tokens stay exact: they are the draft's
// tail, which plays the part of the residual, and only verified tokens ever leave it.
// Source: Liu et al., "KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache", section 4.

#include "compress/method.h"
#include "compress/per_head.h"
#include "kv/packed_run.h"

namespace vericache::compress {
namespace {

kernels::KvFormat FormatOf(int bits) {
  if (bits == 8) return kernels::KvFormat::kQ8;
  return bits == 4 ? kernels::KvFormat::kQ4 : kernels::KvFormat::kQ2;
}

class Kivi final : public Compressor {
 public:
  explicit Kivi(Parameters& parameters)
      : format_(FormatOf(parameters.Choice("bits", 4, {8, 4, 2}))), spec_(parameters.Spec()) {}

  Traits GetTraits() const override { return {.name = "kivi", .is_final = true}; }
  std::string Spec() const override { return spec_; }

  // Cost: O(n * d) per head.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    const kv::RunFormat run{.format = format_, .head_dim = job.source->Shape().head_dim};
    if (!run.IsPossible()) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "{} cannot pack heads of {} dims: bits=8 packs multiples of 4, bits=4 of 8, "
                       "bits=2 of 16",
                       spec_, run.head_dim);
    }
    return PackHeads(job, team, [&](const HeadJob& head) {
      return kv::PackHead(head.view.GatherAll(*job.kernels), format_);
    });
  }

 private:
  kernels::KvFormat format_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeKivi(Parameters& parameters) {
  return std::make_unique<Kivi>(parameters);
}

}  // namespace

extern const Method kKivi;
const Method kKivi{
    .name = "kivi", .summary = "keeps every token in 8, 4 or 2 bits (KIVI)", .make = MakeKivi};

}  // namespace vericache::compress
