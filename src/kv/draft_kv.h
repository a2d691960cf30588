// What a drafter attends to: a packed body, then an exact tail whose end is scratch.
//
//   positions   0 ......... body_end ......... verified ......... drafted
//   storage     PackedKv body      tail: exact copies   tail: drafted rows
//
// Drafted rows live behind the verified ones and die by a length decrement (I1); the exact rows of
// accepted tokens are copied from the full KV. Body and tail are two segments, each cut into chunks
// from its own slot 0, so a body that is the whole KV up to a multiple of 512 tokens gives the full
// KV's bits (I8).
// Threads: one writer; NewRow of distinct (layer, head, row) may run concurrently inside a pass.
#pragma once

#include <cstddef>
#include <vector>

#include "base/aligned_buffer.h"
#include "kv/full_kv.h"
#include "kv/packed_kv.h"
#include "kv/segment.h"

namespace vericache::kv {

class DraftKv final : public CausalKv {
 public:
  explicit DraftKv(const KvShape& shape);

  // Replaces the body with one that stands for tokens [0, body.TokenCount()). Rows of the tail from
  // there on stay; rows before it, or all if the tail does not reach back or forward to it, go.
  // Requires: no drafted rows.
  void SetBody(PackedKv body);
  // Copies the exact rows of tokens [VerifiedCount(), full.Length()) to the tail.
  // Requires: no drafted rows; full.Length() >= VerifiedCount().
  void CatchUp(const FullKv& full);
  // Makes room for n_rows rows behind those there are.
  void Reserve(int n_rows);
  // Rows [0, n_rows) of the last pass become drafted rows.
  void Commit(int n_rows);
  // Drops drafted rows.
  void Rollback();
  // Drafted rows become verified ones without the full KV's say: lossy mode only, where nothing is
  // verified.
  void AcceptDrafted();

  int BodyEnd() const { return body_.TokenCount(); }
  int VerifiedCount() const { return BodyEnd() + n_verified_; }  // tokens
  int DraftedCount() const { return n_drafted_; }
  int TailCount() const { return n_verified_; }
  const PackedKv& Body() const { return body_; }
  // Bytes of body and verified tail that a draft step reads.
  size_t Bytes() const;
  // Bytes of the tail's memory, used or not.
  size_t TailHeldBytes() const { return layout_.Bytes() * static_cast<size_t>(shape_.n_layers); }

  const KvShape& Shape() const override { return shape_; }
  // Body and tail; drafted rows included (they are committed to the draft).
  void Segments(int layer, int head, std::vector<Segment>& out) const override;
  int TokenCount() const override { return VerifiedCount() + n_drafted_; }
  RowSlot NewRow(int layer, int head, int row_idx) override;

 private:
  std::byte* TailLayer(int layer);
  RowSlot TailRow(int layer, int head, int slot);
  const kernels::SlotRun& TailRun(int layer, int head) const;
  void DropFirst(int n_rows);

  KvShape shape_;
  PackedKv body_;
  int n_verified_ = 0;
  int n_drafted_ = 0;
  BlockLayout layout_;                       // of one layer of the tail
  AlignedBuffer tail_;                       // [layer] of layout_.Bytes()
  std::vector<kernels::SlotRun> tail_runs_;  // [layer * n_kv_heads + head]
};

}  // namespace vericache::kv
