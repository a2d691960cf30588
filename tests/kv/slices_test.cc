// Goal: a slice of a segment is those slots and no others, in every format, however runs are
// cut.
// Method: slots read through a slice against the same slots read from the whole.

#include "kv/slices.h"

#include <gtest/gtest.h>

#include "kernels/kv_layout.h"
#include "kv/packed_kv.h"
#include "kv/packed_run.h"
#include "tests/support/kv_model.h"
#include "tests/support/random_kv.h"

namespace vericache::kv {
namespace {

using kernels::KvFormat;
using testing_support::RandomKv;

PROPERTY(Slices, CutAFullKvAtChunks, 10) {
  const RandomKv full(rng, {.n_tokens = rng.In(1, 1500)});
  const auto rows = testing_support::ReadModelHead(*full, 0, 0);
  std::vector<Segment> segments;
  full->Segments(0, 0, segments);
  const int begin = rng.In(0, (full->Length() - 1) / 64) * 64;
  const int n_slots = std::min(full->Length() - begin, rng.In(1, 512));
  kernels::SlotRun runs[kMaxChunkRuns];
  int slot = 0;
  for (const kernels::SlotRun& run : SliceSegment(segments[0], 16, begin, n_slots, runs)) {
    for (int i = 0; i < run.n_slots; ++i, ++slot) {
      std::vector<int16_t> key(16);
      std::vector<int16_t> value(16);
      const I16Slot at = ReadI16Slot(run, 16, i, key.data(), value.data());
      const auto& row = rows[static_cast<size_t>(begin + slot)];
      ASSERT_EQ(key, row.key);
      ASSERT_EQ(value, row.value);
      ASSERT_EQ(at.key_step, row.key_step);
      ASSERT_EQ(at.value_step, row.value_step);
    }
  }
  EXPECT_EQ(slot, n_slots);
}

PROPERTY(Slices, CutPackedRunsAtGroups, 12) {
  const RunFormat format{.format = rng.OneOf({KvFormat::kQ8, KvFormat::kQ4, KvFormat::kQ2}),
                         .head_dim = rng.OneOf({16, 80})};
  const RandomKv full(rng, {.shape = {.n_layers = 1, .n_kv_heads = 1, .head_dim = format.head_dim},
                            .n_tokens = 300});
  HeadSlots slots = HeadView(*full, 0, 0, Position{300}).GatherAll(kernels::RefKernels());
  slots.degrees[100] = 5;
  AlignedBuffer memory;
  const kernels::SlotRun run = PackRun(format, slots, memory);
  const int begin = 64 * rng.In(0, 4);
  const kernels::SlotRun slice = SliceRun(run, format.format, format.head_dim, begin, 64);
  const auto dims = static_cast<size_t>(format.head_dim);
  std::vector<float> whole_key(dims), whole_value(dims), key(dims), value(dims);
  for (int i = 0; i < std::min(64, 300 - begin); ++i) {
    UnpackSlot(format, run, begin + i, whole_key, whole_value);
    UnpackSlot(format, slice, i, key, value);
    ASSERT_EQ(key, whole_key);
    ASSERT_EQ(value, whole_value);
    ASSERT_EQ(slice.log_weights[i], run.log_weights[begin + i]);
  }
}

}  // namespace
}  // namespace vericache::kv
