#include "attend/slices.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kv_layout.h"

namespace vericache::attend {

using kernels::KvFormat;
using kernels::SlotRun;

namespace {

// Bytes of 64 slots, and floats of their scales.
struct GroupSize {
  size_t keys;
  size_t values;
  size_t key_scales;
  size_t value_scales;
};

GroupSize SizeOfGroup(KvFormat format, int head_dim) {
  const size_t n_elements = size_t{kernels::kSubBlockSlots} * static_cast<size_t>(head_dim);
  if (format == KvFormat::kI16) {
    const size_t bytes = n_elements * sizeof(int16_t);
    return {bytes, bytes, kernels::kSubBlockSlots, kernels::kSubBlockSlots};
  }
  const size_t n_bits = format == KvFormat::kQ8 ? 8 : format == KvFormat::kQ4 ? 4 : 2;
  const size_t bytes = n_elements * n_bits / 8;
  return {bytes, bytes, 2 * static_cast<size_t>(head_dim), 2 * kernels::kSubBlockSlots};
}

}  // namespace

SlotRun SliceRun(const SlotRun& run, KvFormat format, int head_dim, int first_slot, int n_slots) {
  VC_DCHECK(first_slot % kernels::kSubBlockSlots == 0, "first_slot = {}", first_slot);
  const GroupSize size = SizeOfGroup(format, head_dim);
  const auto n_groups = static_cast<size_t>(first_slot / kernels::kSubBlockSlots);
  SlotRun slice = run;
  slice.keys += n_groups * size.keys;
  slice.values += n_groups * size.values;
  slice.key_scales += n_groups * size.key_scales;
  slice.value_scales += n_groups * size.value_scales;
  if (slice.log_weights != nullptr) slice.log_weights += first_slot;
  slice.n_slots = n_slots;
  return slice;
}

std::span<const SlotRun> SliceSegment(const kv::Segment& segment, int head_dim, int begin,
                                      int n_slots, SlotRun* out) {
  size_t n_out = 0;
  int run_begin = 0;  // slot of the segment
  for (const SlotRun& run : segment.runs) {
    const int first = std::max(begin - run_begin, 0);
    const int n = std::min(run.n_slots, begin + n_slots - run_begin) - first;
    if (n > 0) out[n_out++] = SliceRun(run, segment.format, head_dim, first, n);
    run_begin += run.n_slots;
    if (run_begin >= begin + n_slots) break;
  }
  VC_DCHECK(run_begin >= begin + n_slots, "slots [{}, {}) of {}", begin, begin + n_slots,
            run_begin);
  return {out, n_out};
}

}  // namespace vericache::attend
