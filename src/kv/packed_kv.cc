#include "kv/packed_kv.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "kv/packed_run.h"

namespace vericache::kv {
namespace {

PackedHead Pack(const HeadSlots& slots, const RunFormat& format) {
  PackedHead head;
  head.format = format.format;
  head.is_rotated = format.is_rotated;
  head.n_slots = slots.Count();
  head.positions = slots.positions;
  head.degrees = slots.degrees;
  head.run = PackRun(format, slots, head.memory);
  return head;
}

}  // namespace

PackedHead PackHead(const HeadSlots& slots, kernels::KvFormat format) {
  return Pack(slots, {.format = format, .head_dim = slots.head_dim});
}

PackedHead PackRotatedHead(const HeadSlots& slots, kernels::KvFormat format) {
  VC_CHECK(format != kernels::KvFormat::kI16, "I16 slots are exact: they are not rotated");
  return Pack(slots, {.format = format, .head_dim = slots.head_dim, .is_rotated = true});
}

PackedKv::PackedKv(const KvShape& shape, int n_tokens_seen, std::vector<PackedHead> heads)
    : shape_(shape), n_tokens_seen_(n_tokens_seen), heads_(std::move(heads)) {
  VC_CHECK(heads_.size() == static_cast<size_t>(shape.HeadCount()), "{} heads of {} * {}",
           heads_.size(), shape.n_layers, shape.n_kv_heads);
  CheckInvariants();
}

const PackedHead& PackedKv::Head(int layer, int head) const {
  return heads_[shape_.HeadIndex(layer, head)];
}

size_t PackedKv::Bytes() const {
  size_t bytes = 0;
  for (const PackedHead& head : heads_) {
    bytes += SlotBytes({.format = head.format, .head_dim = shape_.head_dim}, head.n_slots);
    if (head.HasWeights()) bytes += static_cast<size_t>(head.n_slots) * sizeof(float);
  }
  return bytes;
}

void PackedKv::CheckInvariants() const {
  for (const PackedHead& head : heads_) {
    const auto n = static_cast<size_t>(head.n_slots);
    VC_CHECK(head.positions.size() == n && head.degrees.size() == n && head.run.n_slots >= 0 &&
                 static_cast<size_t>(head.run.n_slots) >= n,
             "I7: {} slots, {} positions, {} degrees, room for {}", n, head.positions.size(),
             head.degrees.size(), head.run.n_slots);
    int64_t n_represented = 0;
    for (size_t i = 0; i < n; ++i) {
      VC_CHECK(head.degrees[i] >= 1, "I7: slot {} stands for {} tokens", i, head.degrees[i]);
      VC_CHECK(i == 0 || head.positions[i - 1] < head.positions[i],
               "I7: position {} at slot {} does not ascend", head.positions[i].value, i);
      n_represented += head.degrees[i];
    }
    VC_CHECK(n_represented <= n_tokens_seen_, "I7: {} tokens represented of {} seen", n_represented,
             n_tokens_seen_);
    VC_CHECK(n == 0 || (head.positions.front() >= Position{0} &&
                        head.positions.back() < Position{n_tokens_seen_}),
             "I7: positions {} to {} of {} tokens", head.positions.front().value,
             head.positions.back().value, n_tokens_seen_);
  }
}

void PackedKv::Segments(int layer, int head, std::vector<Segment>& out) const {
  if (heads_.empty()) return;
  const PackedHead& packed = Head(layer, head);
  if (packed.n_slots == 0) return;
  out.push_back({.format = packed.format,
                 .n_slots = packed.n_slots,
                 .runs = {&packed.run, 1},
                 .positions = packed.positions.data(),
                 .degrees = packed.HasWeights() ? packed.degrees.data() : nullptr,
                 .is_rotated = packed.is_rotated});
}

}  // namespace vericache::kv
