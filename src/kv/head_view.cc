#include "kv/head_view.h"

#include <numeric>

#include "base/check.h"
#include "kv/i16_slots.h"
#include "kv/packed_run.h"

namespace vericache::kv {
namespace {

// Reads slots of one segment, front to back.
class SegmentReader {
 public:
  SegmentReader(const Segment& segment, int head_dim, const kernels::KernelTable& kernels)
      : segment_(segment), head_dim_(head_dim), kernels_(kernels) {}

  // Requires: the slots asked for ascend.
  void AppendTo(HeadSlots& out, int slot) {
    while (slot - run_begin_ >= segment_.runs[run_idx_].n_slots) {
      run_begin_ += segment_.runs[run_idx_++].n_slots;
    }
    const kernels::SlotRun& run = segment_.runs[run_idx_];
    const int in_run = slot - run_begin_;
    const int32_t degree = segment_.DegreeOf(slot);
    const Position position = segment_.PositionOf(slot);
    if (segment_.format == kernels::KvFormat::kI16) {
      int16_t key[kernels::kMaxHeadDim];
      int16_t value[kernels::kMaxHeadDim];
      out.Append(ReadI16Slot(run, head_dim_, in_run, key, value), degree, position);
    } else {
      float key[kernels::kMaxHeadDim];
      float value[kernels::kMaxHeadDim];
      UnpackSlot(
          {.format = segment_.format, .head_dim = head_dim_, .is_rotated = segment_.is_rotated},
          run, in_run, key, value);
      out.Encode(kernels_, {.key = key, .value = value}, degree, position);
    }
  }

 private:
  const Segment& segment_;
  int head_dim_;
  const kernels::KernelTable& kernels_;
  size_t run_idx_ = 0;
  int run_begin_ = 0;
};

}  // namespace

HeadView::HeadView(const KvSource& source, int layer, int head, Position end)
    : head_dim_(source.Shape().head_dim) {
  source.Segments(layer, head, segments_);
  for (Segment& segment : segments_) {
    segment.n_slots = segment.CountBefore(end);
    n_slots_ += segment.n_slots;
  }
}

Position HeadView::PositionOf(int slot) const {
  for (const Segment& segment : segments_) {
    if (slot < segment.n_slots) return segment.PositionOf(slot);
    slot -= segment.n_slots;
  }
  VC_CHECK(false, "slot {} behind the last of {}", slot, n_slots_);
}

int HeadView::CountBefore(Position end) const {
  int n_slots = 0;
  for (const Segment& segment : segments_) n_slots += segment.CountBefore(end);
  return n_slots;
}

HeadSlots HeadView::Gather(std::span<const int> kept, const kernels::KernelTable& kernels) const {
  HeadSlots slots(head_dim_);
  slots.Reserve(static_cast<int>(kept.size()));
  int segment_begin = 0;
  size_t next = 0;
  for (const Segment& segment : segments_) {
    SegmentReader reader(segment, head_dim_, kernels);
    const int segment_end = segment_begin + segment.n_slots;
    for (; next < kept.size() && kept[next] < segment_end; ++next) {
      reader.AppendTo(slots, kept[next] - segment_begin);
    }
    segment_begin = segment_end;
  }
  VC_CHECK(next == kept.size(), "slot {} of {}", kept[next], n_slots_);
  return slots;
}

HeadSlots HeadView::GatherAll(const kernels::KernelTable& kernels) const {
  std::vector<int> all(static_cast<size_t>(n_slots_));
  std::iota(all.begin(), all.end(), 0);
  return Gather(all, kernels);
}

}  // namespace vericache::kv
