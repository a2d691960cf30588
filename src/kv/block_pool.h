// A fixed budget of blocks (one layer of 256 tokens each): free + live = capacity, each block in
// exactly one state (I4). A live block has one holder or several; who writes it must be the only
// one.
//
// Memory is reserved at once and touched on first use, so a large budget costs only what is used.
// Threads: all members may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "base/result.h"
#include "kv/geometry.h"

namespace vericache::kv {

using BlockId = StrongId<struct BlockTag>;

class BlockPool {
 public:
  // capacity_bytes is rounded down to whole blocks.
  BlockPool(const KvShape& shape, size_t capacity_bytes);

  const KvShape& Shape() const { return shape_; }
  const BlockLayout& Layout() const { return layout_; }

  // All or nothing.
  // Errors: kResourceExhausted with wanted, free and capacity.
  Result<std::vector<BlockId>> Allocate(int n_blocks);
  // Each of these live blocks has one holder more.
  void Share(std::span<const BlockId> blocks);
  // One holder gives each back; what nobody holds is free.
  void Free(std::span<const BlockId> blocks);
  bool IsShared(BlockId block) const;
  std::byte* Data(BlockId block);

  int Capacity() const { return capacity_; }
  int FreeCount() const;
  int LiveCount() const;
  // CHECKs I4; for tests and idle time.
  void CheckIntegrity() const;

 private:
  KvShape shape_;
  BlockLayout layout_;
  int capacity_ = 0;
  AlignedBuffer memory_;
  mutable std::mutex mutex_;
  std::vector<BlockId> free_;
  std::vector<int> n_holders_;  // of each block
};

}  // namespace vericache::kv
