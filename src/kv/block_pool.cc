#include "kv/block_pool.h"

#include <algorithm>

#include "base/check.h"

namespace vericache::kv {

BlockPool::BlockPool(const KvShape& shape, size_t capacity_bytes)
    : shape_(shape),
      layout_(shape),
      capacity_(static_cast<int>(capacity_bytes / layout_.Bytes())),
      memory_(static_cast<size_t>(capacity_) * layout_.Bytes()),
      n_holders_(static_cast<size_t>(capacity_), 0) {
  // Handed out from the back: lowest ids first, so that memory is touched front to back.
  free_.reserve(static_cast<size_t>(capacity_));
  for (int id = capacity_ - 1; id >= 0; --id) free_.emplace_back(id);
}

Result<std::vector<BlockId>> BlockPool::Allocate(int n_blocks) {
  VC_CHECK(n_blocks >= 0, "n_blocks = {}", n_blocks);
  const std::lock_guard lock(mutex_);
  const auto n_wanted = static_cast<size_t>(n_blocks);
  if (n_wanted > free_.size()) {
    return MakeError(
        ErrorCode::kResourceExhausted,
        "the KV needs {} more blocks of {} bytes, but only {} of {} are free; allow more KV memory",
        n_blocks, layout_.Bytes(), free_.size(), capacity_);
  }
  std::vector<BlockId> blocks(free_.rbegin(), free_.rbegin() + n_blocks);
  free_.resize(free_.size() - n_wanted);
  for (const BlockId block : blocks) n_holders_[static_cast<size_t>(block.value)] = 1;
  return blocks;
}

void BlockPool::Share(std::span<const BlockId> blocks) {
  const std::lock_guard lock(mutex_);
  for (const BlockId block : blocks) {
    int& n_holders = n_holders_[static_cast<size_t>(block.value)];
    VC_CHECK(n_holders > 0, "block {} is free", block.value);
    ++n_holders;
  }
}

bool BlockPool::IsShared(BlockId block) const {
  const std::lock_guard lock(mutex_);
  return n_holders_[static_cast<size_t>(block.value)] > 1;
}

void BlockPool::Free(std::span<const BlockId> blocks) {
  const std::lock_guard lock(mutex_);
  for (const BlockId block : blocks) {
    VC_CHECK(block.value >= 0 && block.value < capacity_, "block {} of {}", block.value, capacity_);
    int& n_holders = n_holders_[static_cast<size_t>(block.value)];
    VC_CHECK(n_holders > 0, "block {} is free already", block.value);
    if (--n_holders == 0) free_.push_back(block);
  }
}

std::byte* BlockPool::Data(BlockId block) {
  VC_DCHECK(block.value >= 0 && block.value < capacity_, "block {} of {}", block.value, capacity_);
  return memory_.data() + static_cast<size_t>(block.value) * layout_.Bytes();
}

int BlockPool::FreeCount() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(free_.size());
}

int BlockPool::LiveCount() const { return capacity_ - FreeCount(); }

void BlockPool::CheckIntegrity() const {
  const std::lock_guard lock(mutex_);
  std::vector<bool> is_free(n_holders_.size(), false);
  for (const BlockId block : free_) {
    const auto id = static_cast<size_t>(block.value);
    VC_CHECK(!is_free[id], "I4: block {} is in the free list twice", id);
    VC_CHECK(n_holders_[id] == 0, "I4: block {} is both free and live", id);
    is_free[id] = true;
  }
  const auto n_live =
      std::count_if(n_holders_.begin(), n_holders_.end(), [](int n) { return n > 0; });
  VC_CHECK(static_cast<size_t>(n_live) + free_.size() == n_holders_.size(),
           "I4: {} live + {} free != {} blocks", n_live, free_.size(), n_holders_.size());
}

}  // namespace vericache::kv
