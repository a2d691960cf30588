// Goal: a slot goes into the tile layout and comes back, and touches no other slot.
// Method: random slots at random places, each read back after all were written.

#include "kv/i16_slots.h"

#include <gtest/gtest.h>

#include "base/aligned_buffer.h"
#include "kernels/kv_layout.h"
#include "tests/support/kv_model.h"
#include "tests/support/property.h"

namespace vericache::kv {
namespace {

using testing_support::AnyRow;
using testing_support::ModelRow;

PROPERTY(I16Slots, ComeBackBitForBit, 10) {
  const KvShape shape{.n_layers = 1, .n_kv_heads = 2, .head_dim = rng.OneOf({2, 16, 80, 256})};
  const BlockLayout layout(shape, 64 * rng.In(1, 3));
  AlignedBuffer memory(layout.Bytes());
  const int head = rng.In(0, 1);
  std::vector<ModelRow> rows;
  for (int slot = 0; slot < layout.SlotCount(); ++slot) {
    rows.push_back(AnyRow(rng, shape.head_dim));
    const ModelRow& row = rows.back();
    WriteI16Slot(RowOf(layout, memory.data(), head, slot), shape.head_dim,
                 {.key = row.key.data(),
                  .value = row.value.data(),
                  .key_step = row.key_step,
                  .value_step = row.value_step});
  }
  const kernels::SlotRun run = RunOf(layout, memory.data(), head);
  for (int slot = 0; slot < layout.SlotCount(); ++slot) {
    ModelRow read = AnyRow(rng, shape.head_dim);
    const I16Slot at = ReadI16Slot(run, shape.head_dim, slot, read.key.data(), read.value.data());
    read.key_step = at.key_step;
    read.value_step = at.value_step;
    ASSERT_EQ(read, rows[static_cast<size_t>(slot)]);
  }
}

TEST(I16Slots, LieWhereTheLayoutSays) {
  const KvShape shape{.n_layers = 1, .n_kv_heads = 1, .head_dim = 16};
  const BlockLayout layout(shape, 64);
  AlignedBuffer memory(layout.Bytes());
  ModelRow row{.key = std::vector<int16_t>(16), .value = std::vector<int16_t>(16)};
  row.key[5] = 123;
  row.value[9] = -77;
  const RowSlot slot = RowOf(layout, memory.data(), 0, 37);
  WriteI16Slot(slot, 16, {.key = row.key.data(), .value = row.value.data()});
  EXPECT_EQ(slot.keys[kernels::KeyIndex(16, 37, 5)], 123);
  EXPECT_EQ(slot.values[kernels::ValueIndex(16, 37, 9)], -77);
}

PROPERTY(I16Slots, CopyBetweenRuns, 10) {
  const KvShape shape{.n_layers = 1, .n_kv_heads = 1, .head_dim = 16};
  const BlockLayout layout(shape, 64);
  AlignedBuffer from(layout.Bytes());
  AlignedBuffer to(layout.Bytes());
  const ModelRow row = AnyRow(rng, 16);
  const int from_slot = rng.In(0, 63);
  const int to_slot = rng.In(0, 63);
  WriteI16Slot(RowOf(layout, from.data(), 0, from_slot), 16,
               {.key = row.key.data(), .value = row.value.data(), .key_step = 3, .value_step = 4});
  CopyI16Slot(RunOf(layout, from.data(), 0), from_slot, 16, RowOf(layout, to.data(), 0, to_slot));
  ModelRow read = AnyRow(rng, 16);
  const I16Slot at =
      ReadI16Slot(RunOf(layout, to.data(), 0), 16, to_slot, read.key.data(), read.value.data());
  EXPECT_EQ(read.key, row.key);
  EXPECT_EQ(read.value, row.value);
  EXPECT_EQ(at.key_step, 3);
  EXPECT_EQ(at.value_step, 4);
}

}  // namespace
}  // namespace vericache::kv
