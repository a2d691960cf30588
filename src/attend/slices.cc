#include "attend/slices.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kv_layout.h"

namespace vericache::attend {

using kernels::SlotRun;

SlotRun SliceRun(const SlotRun& run, kernels::KvFormat format, int head_dim, int first_slot,
                 int n_slots) {
  VC_DCHECK(first_slot % kernels::kSubBlockSlots == 0, "first_slot = {}", first_slot);
  SlotRun slice = run;
  slice.keys += kernels::KeyBytes(format, head_dim, first_slot);
  slice.values += kernels::ValueBytes(format, head_dim, first_slot);
  slice.key_scales += kernels::KeyScaleCount(format, head_dim, first_slot);
  slice.value_scales += kernels::ValueScaleCount(format, first_slot);
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
