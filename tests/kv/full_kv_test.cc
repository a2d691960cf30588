// Goal: the full KV holds exactly the committed rows, whatever passes and rollbacks came before.
// Method: random passes, commits and truncations against vectors of rows; a pool that runs dry.

#include "kv/full_kv.h"

#include <gtest/gtest.h>

#include "tests/support/kv_model.h"
#include "tests/support/property.h"

namespace vericache::kv {
namespace {

using testing_support::KvModel;
using testing_support::ReadModel;
using testing_support::WriteModelRow;

size_t BytesOf(const KvShape& shape, int n_blocks) {
  return BlockLayout(shape).Bytes() * static_cast<size_t>(n_blocks);
}

void Resize(KvModel& model, int n_tokens) {
  for (auto& head : model) head.resize(static_cast<size_t>(n_tokens));
}

PROPERTY(FullKv, HoldsWhatWasCommitted, 12) {
  const KvShape shape{.n_layers = rng.In(1, 2), .n_kv_heads = rng.In(1, 2), .head_dim = 16};
  BlockPool pool(shape, BytesOf(shape, 4 * shape.n_layers));
  FullKv kv(pool);
  KvModel model(static_cast<size_t>(shape.HeadCount()));
  for (int step = 0; step < 25; ++step) {
    if (rng.Chance(0.3)) {
      const int n_tokens = rng.In(0, kv.Length());
      kv.Truncate(n_tokens);
      Resize(model, n_tokens);
    } else {
      const int length = kv.Length();
      const int n_rows = rng.In(0, rng.Chance(0.3) ? 300 : 10);
      if (!kv.Reserve(length + n_rows).has_value()) continue;
      for (int row = 0; row < n_rows; ++row) WriteModelRow(rng, kv, row, model);
      const int n_kept = rng.In(0, n_rows);  // the others die in place
      kv.Commit(n_kept);
      Resize(model, length + n_kept);
    }
    ASSERT_EQ(kv.TokenCount(), static_cast<int>(model.front().size()));
    ASSERT_EQ(kv.TokenBytes(), FullKvBytesPerToken(shape) * model.front().size());
    ASSERT_EQ(kv.HeldBytes(), BlockLayout(shape).Bytes() * static_cast<size_t>(pool.LiveCount()));
    pool.CheckIntegrity();
  }
  EXPECT_EQ(ReadModel(kv), model);
}

TEST(FullKv, ShowsOneCausalSegmentOfWholeBlocks) {
  const KvShape shape{.n_layers = 2, .n_kv_heads = 2, .head_dim = 16};
  BlockPool pool(shape, BytesOf(shape, 4));
  FullKv kv(pool);
  ASSERT_TRUE(kv.Reserve(257).has_value());
  kv.Commit(200);
  std::vector<Segment> segments;
  kv.Segments(1, 1, segments);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].n_slots, 200);
  EXPECT_TRUE(segments[0].is_causal);
  EXPECT_EQ(segments[0].PositionOf(7), Position{7});
  ASSERT_EQ(segments[0].runs.size(), 2u);
  EXPECT_EQ(segments[0].runs[0].n_slots, kBlockTokens);
}

TEST(FullKv, IsUnchangedWhenThePoolIsDry) {
  const KvShape shape{.n_layers = 3, .n_kv_heads = 1, .head_dim = 16};
  BlockPool pool(shape, BytesOf(shape, 5));  // one block of tokens and two spare layers
  FullKv kv(pool);
  ASSERT_TRUE(kv.Reserve(256).has_value());
  kv.Commit(256);
  const Status refused = kv.Reserve(257);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(kv.Length(), 256);
  EXPECT_EQ(pool.FreeCount(), 2);
}

TEST(FullKv, GivesBackBlocksWhenCutAndWhenItDies) {
  const KvShape shape{.n_layers = 2, .n_kv_heads = 1, .head_dim = 16};
  BlockPool pool(shape, BytesOf(shape, 6));
  {
    FullKv kv(pool);
    ASSERT_TRUE(kv.Reserve(600).has_value());
    kv.Commit(600);
    EXPECT_EQ(pool.FreeCount(), 0);
    kv.Truncate(256);
    EXPECT_EQ(pool.FreeCount(), 4);
  }
  EXPECT_EQ(pool.FreeCount(), 6);
  pool.CheckIntegrity();
}

TEST(FullKvDeathTest, CommitsOnlyReservedRows) {
  const KvShape shape{.n_layers = 1, .n_kv_heads = 1, .head_dim = 16};
  BlockPool pool(shape, BytesOf(shape, 2));
  FullKv kv(pool);
  ASSERT_TRUE(kv.Reserve(10).has_value());
  EXPECT_DEATH(kv.Commit(257), "room for 256");
  EXPECT_DEATH(kv.Truncate(1), "to 1 of 0 tokens");
}

}  // namespace
}  // namespace vericache::kv
