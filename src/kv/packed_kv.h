// The one compressed format: what every compressor makes and every draft reads. Per (layer, head)
// its own slot count, storage format, positions and degrees (tokens a slot stands for; attention
// adds log2(degree) to its score).
//
// Invariants (I7): positions ascend; degrees sum to the tokens represented; represented + dropped =
//                  seen, in every head.
// Threads:         immutable once built.
#pragma once

#include <vector>

#include "base/aligned_buffer.h"
#include "kv/head_slots.h"
#include "kv/segment.h"

namespace vericache::kv {

struct PackedHead {
  kernels::KvFormat format = kernels::KvFormat::kI16;
  bool is_rotated = false;  // keys and values are stored rotated (kernels/hadamard.h)
  int n_slots = 0;
  kernels::SlotRun run;             // views `memory`; capacity n_slots rounded up to 64
  std::vector<Position> positions;  // [n_slots]
  std::vector<int32_t> degrees;     // [n_slots]
  AlignedBuffer memory;

  bool HasWeights() const { return run.log_weights != nullptr; }  // some degree is not 1
};

// Packs the slots of one head in a format.
PackedHead PackHead(const HeadSlots& slots, kernels::KvFormat format);
// The same, rotated before rounding. Requires: the format rounds (it is not kI16).
PackedHead PackRotatedHead(const HeadSlots& slots, kernels::KvFormat format);

class PackedKv final : public KvSource {
 public:
  PackedKv() = default;  // of no tokens
  // Shapes: heads [n_layers * n_kv_heads], layer-major. n_tokens_seen: tokens [0, n) of the source.
  // CHECKs I7.
  PackedKv(const KvShape& shape, int n_tokens_seen, std::vector<PackedHead> heads);

  const PackedHead& Head(int layer, int head) const;
  // Bytes that a draft step reads: codes, scales and log weights of valid slots.
  size_t Bytes() const;
  // CHECKs I7.
  void CheckInvariants() const;

  const KvShape& Shape() const override { return shape_; }
  void Segments(int layer, int head, std::vector<Segment>& out) const override;
  int TokenCount() const override { return n_tokens_seen_; }

 private:
  KvShape shape_;
  int n_tokens_seen_ = 0;
  std::vector<PackedHead> heads_;
};

}  // namespace vericache::kv
