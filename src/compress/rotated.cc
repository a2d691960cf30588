// Rotated: every slot kept in 8, 4 or 2 bits, keys and values rotated before they are rounded.
//
//   k' = H k,  v' = H v,   H the orthonormal Walsh-Hadamard matrix of a head's dims, H H = 1
//   packed as kivi packs: q . k = Hq . k',  sum of p v = H (sum of p v')
//
// Rotation spreads outliers of a channel over all channels, so that a range of a whole value, which
// has one step, is not one channel's alone. Keys keep a range per channel and 64 slots, as in kivi.
// Attention rotates the queries of the body, and what it read there back.
// Source: Ashkboos et al., "QuaRot" (arXiv 2404.00456), section 4; llama.cpp pull request 21038,
//         which rotates keys after RoPE and values by the same matrix.

#include "compress/method.h"
#include "compress/per_head.h"
#include "kv/packed_run.h"

namespace vericache::compress {
namespace {

kernels::KvFormat FormatOf(int bits) {
  if (bits == 8) return kernels::KvFormat::kQ8;
  return bits == 4 ? kernels::KvFormat::kQ4 : kernels::KvFormat::kQ2;
}

class Rotated final : public Compressor {
 public:
  explicit Rotated(Parameters& parameters)
      : format_(FormatOf(parameters.Choice("bits", 4, {8, 4, 2}))), spec_(parameters.Spec()) {}

  Traits GetTraits() const override { return {.name = "rotated", .is_final = true}; }
  std::string Spec() const override { return spec_; }

  // Cost: O(n * d * log d) per head.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    const kv::RunFormat run{
        .format = format_, .head_dim = job.source->Shape().head_dim, .is_rotated = true};
    if (!run.IsPossible()) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "{} cannot pack heads of {} dims: bits=8 packs multiples of 4, bits=4 of 8, "
                       "bits=2 of 16",
                       spec_, run.head_dim);
    }
    return PackHeads(job, team, [&](const HeadJob& head) {
      return kv::PackRotatedHead(head.view.GatherAll(*job.kernels), format_);
    });
  }

 private:
  kernels::KvFormat format_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeRotated(Parameters& parameters) {
  return std::make_unique<Rotated>(parameters);
}

}  // namespace

extern const Method kRotated;
const Method kRotated{.name = "rotated",
                      .summary = "keeps every token in 8, 4 or 2 bits, rotated first (QuaRot)",
                      .make = MakeRotated};

}  // namespace vericache::compress
