// Identity: keeps every slot, bit for bit.
//
// The witness of the whole machine (I8): a draft over it gives the full KV's bits, so that every
// draft is accepted. Its body ends at a multiple of a softmax chunk, so that body and tail are cut
// where the full KV is.

#include "compress/method.h"
#include "compress/per_head.h"

namespace vericache::compress {
namespace {

class Identity final : public Compressor {
 public:
  Traits GetTraits() const override {
    return {.name = "identity", .is_exact = true, .body_grain = kernels::kChunkSlots};
  }
  std::string Spec() const override { return "identity"; }

  // Cost: O(n * d), one copy.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    return PackHeads(job, team, [&](const HeadJob& head) {
      return kv::PackHead(head.view.GatherAll(*job.kernels), kernels::KvFormat::kI16);
    });
  }
};

std::unique_ptr<Compressor> MakeIdentity(Parameters& /*parameters*/) {
  return std::make_unique<Identity>();
}

}  // namespace

extern const Method kIdentity;
const Method kIdentity{.name = "identity",
                       .summary = "keeps everything, exactly: drafts are always accepted",
                       .make = MakeIdentity};

}  // namespace vericache::compress
