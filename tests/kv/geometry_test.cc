// Goal: the parts of a block tile it without gap or overlap, and byte counts add up.
// Method: mark every byte that a head's parts cover; each must be marked once.

#include "kv/geometry.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/property.h"

namespace vericache::kv {
namespace {

PROPERTY(BlockLayout, PartsTileTheBlock, 20) {
  const KvShape shape{
      .n_layers = 2, .n_kv_heads = rng.In(1, 4), .head_dim = rng.OneOf({16, 64, 80, 128, 256})};
  const int n_slots = 64 * rng.In(1, 5);
  const BlockLayout layout(shape, n_slots);
  std::vector<int> n_owners(layout.Bytes(), 0);
  const auto mark = [&](size_t begin, size_t n_bytes) {
    ASSERT_EQ(begin % 64, 0u);
    for (size_t i = begin; i < begin + n_bytes; ++i) ++n_owners.at(i);
  };
  const auto slots = static_cast<size_t>(n_slots);
  const auto dims = static_cast<size_t>(shape.head_dim);
  for (int head = 0; head < shape.n_kv_heads; ++head) {
    mark(layout.KeysAt(head), slots * dims * 2);
    mark(layout.ValuesAt(head), slots * dims * 2);
    mark(layout.KeyStepsAt(head), slots * 4);
    mark(layout.ValueStepsAt(head), slots * 4);
  }
  for (const int n : n_owners) ASSERT_EQ(n, 1);
  EXPECT_EQ(layout.Bytes() * static_cast<size_t>(shape.n_layers),
            slots * FullKvBytesPerToken(shape));
}

TEST(KvShape, ListsHeadsLayerByLayer) {
  const KvShape shape{.n_layers = 3, .n_kv_heads = 4, .head_dim = 64};
  EXPECT_EQ(shape.HeadCount(), 12);
  EXPECT_EQ(shape.HeadIndex(0, 0), 0u);
  EXPECT_EQ(shape.HeadIndex(1, 0), 4u);
  EXPECT_EQ(shape.HeadIndex(2, 3), 11u);
}

TEST(FullKvBytesPerToken, IsTheFigureOfTheModelTable) {
  // SmolLM2-135M: 30 layers, 3 KV heads of 64; an F16 KV takes 23,040 bytes, I16 3 % more.
  EXPECT_EQ(FullKvBytesPerToken({.n_layers = 30, .n_kv_heads = 3, .head_dim = 64}), 23040u + 720u);
}

}  // namespace
}  // namespace vericache::kv
