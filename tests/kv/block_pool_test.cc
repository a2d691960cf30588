// Goal: the pool conserves blocks (I4), hands out all or nothing, and catches misuse.
// Method: random allocations, shares and frees against a std::map of holders.

#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>

#include "tests/support/property.h"

namespace vericache::kv {
namespace {

constexpr KvShape kShape{.n_layers = 2, .n_kv_heads = 1, .head_dim = 16};

size_t BytesOf(int n_blocks) { return BlockLayout(kShape).Bytes() * static_cast<size_t>(n_blocks); }

PROPERTY(BlockPool, KeepsEveryBlockInOneState, 30) {
  const int capacity = rng.In(1, 20);
  BlockPool pool(kShape, BytesOf(capacity) + static_cast<size_t>(rng.In(0, 1000)));
  ASSERT_EQ(pool.Capacity(), capacity);
  std::map<BlockId, int> live;  // holders
  for (int step = 0; step < 200; ++step) {
    if (rng.Chance(0.5)) {
      const int n_wanted = rng.In(0, 6);
      const auto blocks = pool.Allocate(n_wanted);
      ASSERT_EQ(blocks.has_value(), n_wanted <= capacity - static_cast<int>(live.size()));
      if (!blocks.has_value()) continue;
      for (const BlockId block : *blocks)
        ASSERT_TRUE(live.insert({block, 1}).second) << block.value;
    } else {
      std::vector<BlockId> chosen;
      for (const auto& [block, n_holders] : live) {
        if (rng.Chance(0.3)) chosen.push_back(block);
      }
      const bool is_share = rng.Chance(0.4);
      for (const BlockId block : chosen) {
        live[block] += is_share ? 1 : -1;
        if (live[block] == 0) live.erase(block);
      }
      is_share ? pool.Share(chosen) : pool.Free(chosen);
    }
    for (const auto& [block, n_holders] : live) ASSERT_EQ(pool.IsShared(block), n_holders > 1);
    ASSERT_EQ(pool.LiveCount(), static_cast<int>(live.size()));
    ASSERT_EQ(pool.FreeCount(), capacity - pool.LiveCount());
    pool.CheckIntegrity();
  }
}

TEST(BlockPool, BlocksDoNotOverlap) {
  BlockPool pool(kShape, BytesOf(3));
  const auto blocks = pool.Allocate(3).value();
  for (const BlockId block : blocks) {
    std::memset(pool.Data(block), block.value + 1, pool.Layout().Bytes());
  }
  for (const BlockId block : blocks) {
    for (size_t i = 0; i < pool.Layout().Bytes(); ++i) {
      ASSERT_EQ(pool.Data(block)[i], static_cast<std::byte>(block.value + 1));
    }
  }
}

TEST(BlockPool, RefusesMoreThanItHasWithTheNumbers) {
  BlockPool pool(kShape, BytesOf(4));
  const auto held = pool.Allocate(3).value();
  const auto refused = pool.Allocate(2);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.error().message.find("2 more blocks"), std::string::npos);
  EXPECT_NE(refused.error().message.find("only 1 of 4"), std::string::npos);
  EXPECT_EQ(pool.FreeCount(), 1);
}

TEST(BlockPool, SurvivesManyThreads) {
  BlockPool pool(kShape, BytesOf(8));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&pool] {
      for (int round = 0; round < 500; ++round) {
        const auto blocks = pool.Allocate(2);
        if (blocks.has_value()) pool.Free(*blocks);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  pool.CheckIntegrity();
  EXPECT_EQ(pool.FreeCount(), 8);
}

TEST(BlockPoolDeathTest, CatchesDoubleFree) {
  BlockPool pool(kShape, BytesOf(2));
  const auto blocks = pool.Allocate(1).value();
  pool.Free(blocks);
  EXPECT_DEATH(pool.Free(blocks), "free already");
  EXPECT_DEATH(pool.Share(blocks), "is free");
  EXPECT_DEATH(pool.Free(std::vector<BlockId>{BlockId{2}}), "block 2 of 2");
}

}  // namespace
}  // namespace vericache::kv
