// Goal: a slice of a segment's runs is where its slots are.
// Method: addresses against the layout of every format.
#include "attend/slices.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/kv_layout.h"

namespace vericache::attend {
namespace {

using kernels::KvFormat;
using kernels::SlotRun;

constexpr int kHeadDim = 32;

// Runs at made-up addresses: nothing is read.
SlotRun RunAt(uintptr_t base, int n_slots, bool has_log_weights = true) {
  const auto floats = [&](uintptr_t at) { return reinterpret_cast<const float*>(base + at); };
  return {.keys = reinterpret_cast<const std::byte*>(base),
          .values = reinterpret_cast<const std::byte*>(base + 0x100000),
          .key_scales = floats(0x200000),
          .value_scales = floats(0x300000),
          .log_weights = has_log_weights ? floats(0x400000) : nullptr,
          .n_slots = n_slots};
}

TEST(SliceRun, StartsWhereTheSlotLies) {
  for (const KvFormat format : {KvFormat::kI16, KvFormat::kQ8, KvFormat::kQ4, KvFormat::kQ2}) {
    const SlotRun run = RunAt(0x10000000, 2048);
    const SlotRun slice = SliceRun(run, format, kHeadDim, 576, 100);
    EXPECT_EQ(slice.n_slots, 100);
    EXPECT_EQ(slice.keys - run.keys,
              static_cast<std::ptrdiff_t>(kernels::KeyPlace(format, kHeadDim, 576, 0).byte));
    EXPECT_EQ(slice.values - run.values,
              static_cast<std::ptrdiff_t>(kernels::ValuePlace(format, kHeadDim, 576, 0).byte));
    const bool is_truth = format == KvFormat::kI16;
    EXPECT_EQ(slice.key_scales - run.key_scales,
              is_truth ? 576 : static_cast<int>(kernels::KeyScaleIndex(kHeadDim, 576, 0)));
    EXPECT_EQ(slice.value_scales - run.value_scales,
              is_truth ? 576 : static_cast<int>(kernels::ValueScaleIndex(576)));
    EXPECT_EQ(slice.log_weights - run.log_weights, 576);
  }
  EXPECT_EQ(SliceRun(RunAt(0x10000000, 128, false), KvFormat::kQ4, kHeadDim, 64, 1).log_weights,
            nullptr);
}

TEST(SliceSegment, CrossesRuns) {
  const std::vector<SlotRun> runs = {RunAt(0x10000000, 256), RunAt(0x20000000, 64),
                                     RunAt(0x30000000, 512)};
  const kv::Segment segment{.n_slots = 800, .runs = runs};
  SlotRun out[kMaxChunkRuns];
  const auto whole = SliceSegment(segment, kHeadDim, 0, 512, out);
  ASSERT_EQ(whole.size(), 3u);
  EXPECT_EQ(whole[0].n_slots, 256);
  EXPECT_EQ(whole[1].n_slots, 64);
  EXPECT_EQ(whole[2].n_slots, 192);
  EXPECT_EQ(whole[2].keys, runs[2].keys);

  const auto rest = SliceSegment(segment, kHeadDim, 512, 288, out);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].n_slots, 288);
  EXPECT_EQ(rest[0].keys - runs[2].keys, 192 * kHeadDim * 2);

  const auto middle = SliceSegment(segment, kHeadDim, 192, 65, out);
  ASSERT_EQ(middle.size(), 2u);
  EXPECT_EQ(middle[0].n_slots, 64);
  EXPECT_EQ(middle[0].key_scales - runs[0].key_scales, 192);
  EXPECT_EQ(middle[1].n_slots, 1);
}

}  // namespace
}  // namespace vericache::attend
