// Goal: a head reads the same whatever segments it lies in, and is cut at a position.
// Method: a draft KV of body and tail against the full KV that both came from.

#include "kv/head_view.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kv/draft_kv.h"
#include "tests/support/kv_model.h"
#include "tests/support/property.h"
#include "tests/support/random_kv.h"

namespace vericache::kv {
namespace {

using testing_support::ReadModelHead;

PackedKv CopyOf(const FullKv& full, Position end) {
  std::vector<PackedHead> heads;
  for (int layer = 0; layer < full.Shape().n_layers; ++layer) {
    for (int head = 0; head < full.Shape().n_kv_heads; ++head) {
      const HeadView view(full, layer, head, end);
      heads.push_back(PackHead(view.GatherAll(kernels::RefKernels()), kernels::KvFormat::kI16));
    }
  }
  return PackedKv(full.Shape(), end.value, std::move(heads));
}

PROPERTY(HeadView, ReadsBodyAndTailAsOneList, 10) {
  const KvShape shape{.n_layers = 2, .n_kv_heads = 2, .head_dim = 16};
  const testing_support::RandomKv full(rng, {.shape = shape, .n_tokens = rng.In(1, 600)});
  DraftKv draft(shape);
  draft.SetBody(CopyOf(*full, Position{rng.In(0, full->Length())}));
  draft.CatchUp(*full);
  const Position end{rng.In(0, full->Length())};
  const HeadView view(draft, 1, 1, end);
  ASSERT_EQ(view.Count(), end.value);
  const HeadSlots slots = view.GatherAll(kernels::RefKernels());
  ASSERT_EQ(slots.Count(), end.value);
  auto expected = ReadModelHead(*full, 1, 1);
  for (int i = 0; i < slots.Count(); ++i) {
    const auto& row = expected[static_cast<size_t>(i)];
    ASSERT_TRUE(std::equal(row.key.begin(), row.key.end(), slots.KeyCodes(i)));
    ASSERT_EQ(slots.positions[static_cast<size_t>(i)], Position{i});
    ASSERT_EQ(view.PositionOf(i), Position{i});
  }
  const Position cut{rng.In(0, full->Length())};
  EXPECT_EQ(view.CountBefore(cut), std::min(cut.value, end.value));
}

PROPERTY(HeadView, GathersTheSlotsNamed, 10) {
  const KvShape shape{.n_layers = 1, .n_kv_heads = 1, .head_dim = 16};
  const testing_support::RandomKv full(rng, {.shape = shape, .n_tokens = rng.In(1, 600)});
  std::vector<int> kept;
  for (int slot = 0; slot < full->Length(); ++slot) {
    if (rng.Chance(0.3)) kept.push_back(slot);
  }
  const HeadView view(*full, 0, 0, Position{full->Length()});
  const HeadSlots slots = view.Gather(kept, kernels::RefKernels());
  const auto all = ReadModelHead(*full, 0, 0);
  ASSERT_EQ(slots.Count(), static_cast<int>(kept.size()));
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto& row = all[static_cast<size_t>(kept[i])];
    const I16Slot at = slots.At(static_cast<int>(i));
    ASSERT_TRUE(std::equal(row.key.begin(), row.key.end(), at.key));
    ASSERT_TRUE(std::equal(row.value.begin(), row.value.end(), at.value));
    ASSERT_EQ(at.key_step, row.key_step);
    ASSERT_EQ(at.value_step, row.value_step);
  }
}

TEST(HeadViewDeathTest, RefusesSlotsThatAreNotThere) {
  testing_support::Rng rng(1);
  const testing_support::RandomKv full(rng, {.n_tokens = 10});
  const HeadView view(*full, 0, 0, Position{5});
  EXPECT_DEATH(view.Gather(std::vector<int>{5}, kernels::RefKernels()), "slot 5 of 5");
  EXPECT_DEATH(view.PositionOf(5), "behind the last");
}

}  // namespace
}  // namespace vericache::kv
