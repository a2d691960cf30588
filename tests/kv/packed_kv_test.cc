// Goal: a packed KV keeps what it was given, says its size, and refuses what breaks I7.
// Method: random heads packed and read back; one deliberate violation of each rule.

#include "kv/packed_kv.h"

#include <gtest/gtest.h>

#include "tests/support/kv_model.h"
#include "tests/support/property.h"

namespace vericache::kv {
namespace {

using kernels::KvFormat;
using testing_support::AnyRow;
using testing_support::ModelRow;

HeadSlots AnySlots(testing_support::Rng& rng, int head_dim, int n_slots, bool is_merged) {
  HeadSlots slots(head_dim);
  Position position{0};
  for (int i = 0; i < n_slots; ++i) {
    const int32_t degree = is_merged ? rng.In(1, 9) : 1;
    position = position + degree;
    const ModelRow row = AnyRow(rng, head_dim);
    slots.Append({.key = row.key.data(),
                  .value = row.value.data(),
                  .key_step = row.key_step,
                  .value_step = row.value_step},
                 degree, position + -1);
  }
  return slots;
}

int TokensOf(const HeadSlots& slots) {
  return slots.Count() == 0 ? 0 : slots.positions.back().value + 1;
}

PackedKv OneHead(const HeadSlots& slots, int n_tokens) {
  std::vector<PackedHead> heads;
  heads.push_back(PackHead(slots, KvFormat::kI16));
  return PackedKv({.n_layers = 1, .n_kv_heads = 1, .head_dim = slots.head_dim}, n_tokens,
                  std::move(heads));
}

PROPERTY(PackedKv, KeepsI16SlotsBitForBit, 20) {
  const bool is_merged = rng.Chance(0.5);
  const HeadSlots slots =
      AnySlots(rng, rng.OneOf({16, 64, 80}), rng.OneOf({0, 1, 15, 63, 64, 65, 200}), is_merged);
  const PackedKv packed = OneHead(slots, TokensOf(slots) + rng.In(0, 5));
  const HeadView view(packed, 0, 0, Position{packed.TokenCount()});
  const HeadSlots read = view.GatherAll(kernels::RefKernels());
  EXPECT_EQ(read.key_codes, slots.key_codes);
  EXPECT_EQ(read.value_codes, slots.value_codes);
  EXPECT_EQ(read.key_steps, slots.key_steps);
  EXPECT_EQ(read.value_steps, slots.value_steps);
  EXPECT_EQ(read.degrees, slots.degrees);
  EXPECT_EQ(read.positions, slots.positions);
}

TEST(PackedKv, CountsTheBytesADraftReads) {
  testing_support::Rng rng(1);
  const HeadSlots plain = AnySlots(rng, 64, 65, false);
  EXPECT_EQ(OneHead(plain, 65).Bytes(), 65u * (2 * 64 * 2 + 8));
  HeadSlots merged = plain;
  merged.degrees[3] = 2;
  EXPECT_EQ(OneHead(merged, 66).Bytes(), 65u * (2 * 64 * 2 + 8 + 4));
  EXPECT_EQ(PackedKv().Bytes(), 0u);
}

TEST(PackedKv, CarriesLogWeightsOnlyWhereSomethingWasMerged) {
  testing_support::Rng rng(2);
  HeadSlots slots = AnySlots(rng, 16, 10, false);
  EXPECT_FALSE(PackHead(slots, KvFormat::kI16).HasWeights());
  slots.degrees[4] = 8;
  const PackedHead head = PackHead(slots, KvFormat::kI16);
  ASSERT_TRUE(head.HasWeights());
  EXPECT_EQ(head.run.log_weights[3], 0.0f);
  EXPECT_EQ(head.run.log_weights[4], 3.0f);
}

TEST(PackedKv, HasNoSegmentForAnEmptyHead) {
  const PackedKv packed = OneHead(HeadSlots(16), 7);
  std::vector<Segment> segments;
  packed.Segments(0, 0, segments);
  EXPECT_TRUE(segments.empty());
  EXPECT_EQ(packed.TokenCount(), 7);
  PackedKv().Segments(0, 0, segments);
  EXPECT_TRUE(segments.empty());
}

TEST(PackedKvDeathTest, RefusesWhatBreaksI7) {
  testing_support::Rng rng(3);
  const HeadSlots good = AnySlots(rng, 16, 5, false);
  EXPECT_DEATH(OneHead(good, 4), "I7: 5 tokens represented of 4 seen");
  std::vector<PackedHead> heads;
  heads.push_back(PackHead(good, KvFormat::kI16));
  heads.front().degrees[2] = 0;
  const KvShape shape{.n_layers = 1, .n_kv_heads = 1, .head_dim = 16};
  EXPECT_DEATH(PackedKv(shape, 9, std::move(heads)), "I7: slot 2 stands for 0 tokens");
  HeadSlots bad = good;
  bad.positions[3] = bad.positions[2];
  EXPECT_DEATH(OneHead(bad, 9), "I7: position 2 at slot 3 does not ascend");
  bad = good;
  bad.positions[4] = Position{9};
  EXPECT_DEATH(OneHead(bad, 9), "I7: positions 0 to 9 of 9 tokens");
  EXPECT_DEATH(PackedKv(shape, 0, {}), "0 heads of 1");
}

}  // namespace
}  // namespace vericache::kv
