// Goal: the full KV holds exactly the committed rows, whatever passes and rollbacks came before.
// Method: random passes, commits and truncations against vectors of rows; a pool that runs dry.

#include "kv/full_kv.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/kv_model.h"
#include "tests/support/property.h"

namespace vericache::kv {
namespace {

using testing_support::KvModel;
using testing_support::ReadModel;
using testing_support::Rng;
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

// Writes n_rows rows behind those there are, to the KV and to the model.
void Append(Rng& rng, FullKv& kv, int n_rows, KvModel& model) {
  ASSERT_TRUE(kv.Reserve(kv.Length() + n_rows).has_value());
  for (int row = 0; row < n_rows; ++row) WriteModelRow(rng, kv, row, model);
  kv.Commit(n_rows);
}

// What one sequence writes behind a shared beginning, none of the others sees.
PROPERTY(FullKv, SharesABeginningAndNothingElse, 12) {
  const KvShape shape{.n_layers = rng.In(1, 2), .n_kv_heads = rng.In(1, 2), .head_dim = 16};
  BlockPool pool(shape, BytesOf(shape, 30 * shape.n_layers));
  KvModel model(static_cast<size_t>(shape.HeadCount()));
  {
    FullKv first(pool);
    Append(rng, first, rng.OneOf({1, 255, 256, 257, 600}), model);
    for (int round = 0; round < 3; ++round) {
      const int n_shared = rng.OneOf({0, 1, first.Length() / 2, first.Length()});
      KvModel other_model = model;
      Resize(other_model, n_shared);
      FullKv other(pool);
      other.Share(first, n_shared);
      ASSERT_EQ(ReadModel(other), other_model);
      if (rng.Chance(0.8)) Append(rng, other, rng.In(1, 300), other_model);
      ASSERT_EQ(ReadModel(other), other_model);
      ASSERT_EQ(ReadModel(first), model);
      // The other way round too: a sequence that outgrows what shares it.
      if (rng.Chance(0.5)) Append(rng, first, rng.In(1, 20), model);
      ASSERT_EQ(ReadModel(other), other_model);
    }
    ASSERT_EQ(ReadModel(first), model);
  }
  EXPECT_EQ(pool.LiveCount(), 0);
  pool.CheckIntegrity();
}

TEST(FullKv, CopiesOnlyTheBlockWhereSequencesPart) {
  const KvShape shape{.n_layers = 2, .n_kv_heads = 1, .head_dim = 16};
  BlockPool pool(shape, BytesOf(shape, 8));
  auto first = std::make_unique<FullKv>(pool);
  ASSERT_TRUE(first->Reserve(600).has_value());
  first->Commit(600);
  FullKv other(pool);
  other.Share(*first, 520);
  EXPECT_EQ(pool.LiveCount(), 6);
  ASSERT_TRUE(other.Reserve(520).has_value());  // nothing is to be written
  EXPECT_EQ(pool.LiveCount(), 6);
  const Status refused = other.Reserve(769);  // a block and a copy, of two layers each
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(pool.LiveCount(), 6);
  ASSERT_TRUE(other.Reserve(521).has_value());
  EXPECT_EQ(pool.LiveCount(), 8);
  FullKv heir(pool);
  heir.Share(*first, 600);
  first.reset();
  ASSERT_TRUE(heir.Reserve(700).has_value());  // the only one left to read the last block
  EXPECT_EQ(pool.FreeCount(), 0);
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
  FullKv other(pool);
  EXPECT_DEATH(other.Share(kv, 1), "1 of 0 tokens");
  EXPECT_DEATH(kv.Share(other, 0), "1 blocks held");
}

}  // namespace
}  // namespace vericache::kv
