// The truth: every token's K and V in I16, in blocks of 256 tokens, which only prefill and verify
// write (I1), or what reads back what they wrote.
//
// A sequence that begins as another one did shares its blocks; the block in which they part is
// copied before it is written.
//
// Invariants: blocks are append-only; slots at or behind Length() are not part of it, whatever
//             bytes they hold: no result reads them.
// Threads:    one writer at a time; NewRow of distinct (layer, head, row) may run concurrently
//             inside a pass.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "kv/block_pool.h"
#include "kv/segment.h"

namespace vericache::kv {

class FullKv final : public CausalKv {
 public:
  // The pool must outlive the KV and have the same shape.
  explicit FullKv(BlockPool& pool);
  ~FullKv() override;
  FullKv(const FullKv&) = delete;
  FullKv& operator=(const FullKv&) = delete;

  // Begins with the first n_tokens of `other`, whose blocks are shared and stay as they are.
  // Requires: this KV is empty; the same pool; `other` is not written meanwhile.
  void Share(const FullKv& other, int n_tokens);
  // Makes room for tokens [0, n_tokens): rows behind Length() then have blocks of their own.
  // Errors: kResourceExhausted with the numbers; the KV is unchanged then.
  Status Reserve(int n_tokens);
  // Rows [0, n_rows) of the last pass become tokens.
  void Commit(int n_rows);
  // Forgets tokens from n_tokens on and gives back the blocks behind them.
  void Truncate(int n_tokens);
  int Length() const { return length_; }
  // One layer of one block as it lies in memory, for files: committed tokens only mean something.
  std::span<const std::byte> BlockBytes(int block_idx, int layer) const;
  // The same to fill. Requires: room was made, and no token of the block is committed.
  std::span<std::byte> NewBlockBytes(int block_idx, int layer);
  // Bytes of the blocks held, and of the tokens in them.
  size_t HeldBytes() const;
  size_t TokenBytes() const;

  const KvShape& Shape() const override;
  void Segments(int layer, int head, std::vector<Segment>& out) const override;
  int TokenCount() const override { return length_; }
  RowSlot NewRow(int layer, int head, int row_idx) override;

 private:
  BlockId BlockAt(int block_idx, int layer) const;
  int HeldTokens() const;  // tokens the blocks have room for
  // The next row would be written to a block that others read too.
  bool IsNextBlockShared() const;
  void AppendRuns(int layer, const std::byte* block);
  // Takes copies of the block of the next row, one a layer, in its place.
  void ReplaceNextBlock(std::span<const BlockId> copies);

  BlockPool& pool_;
  int length_ = 0;
  std::vector<BlockId> blocks_;                      // [block][layer]
  std::vector<std::vector<kernels::SlotRun>> runs_;  // [layer * n_kv_heads + head]
};

}  // namespace vericache::kv
