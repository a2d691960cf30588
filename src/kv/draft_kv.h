// What a drafter attends to: a packed body, then an exact tail whose end is scratch.
//
//   positions   0 ......... body_end ......... verified ......... drafted
//   storage     PackedKv body      tail: exact copies   tail: drafted rows
//
// Drafted rows live behind the verified ones and die by a length decrement (I1); the exact rows of accepted tokens are copied
// from the full KV. Body and tail are two segments, each cut into chunks from its own slot 0, so a body that is the whole KV
// up to a multiple of 512 tokens gives the full KV's bits (I8).
// Threads: one writer; NewRow of distinct (layer, head, row) may run concurrently inside a pass.
#pragma once

#include <vector>

#include "base/result.h"
#include "kv/full_kv.h"
#include "kv/packed_kv.h"
#include "kv/segment.h"

namespace vericache::kv {

class DraftKv final : public CausalKv {
 public:
  explicit DraftKv(const KvShape& shape);

  // Replaces the body with one that stands for tokens [0, body.TokenCount()) and drops the tail's rows before that position
  // (all rows, if the tail did not reach it). Rows of the tail from there on are kept.
  // Requires: no drafted rows.
  void SetBody(PackedKv body);
  // Copies the exact rows of tokens [VerifiedCount(), full.Length()) to the tail. Requires: no drafted rows.
  void CatchUp(const FullKv& full);
  // Makes room for n_rows drafted rows.
  void Reserve(int n_rows);
  // Rows [0, n_rows) of the last pass become drafted rows.
  void Commit(int n_rows);
  // Drops drafted rows.
  void Rollback();
  // Drafted rows become verified ones without the full KV's say: lossy mode only, where nothing is verified.
  void AcceptDrafted();

  int BodyEnd() const { return body_.TokenCount(); }
  int VerifiedCount() const { return BodyEnd() + n_verified_; }  // tokens
  int DraftedCount() const { return n_drafted_; }
  int TailCount() const { return n_verified_; }
  const PackedKv& Body() const { return body_; }
  // Body and verified tail, as the memory a draft step reads.
  size_t Bytes() const;

  const KvShape& Shape() const override { return shape_; }
  // Body and tail; drafted rows included (they are committed to the draft).
  void Segments(int layer, int head, std::vector<Segment>& out) const override;
  int TokenCount() const override { return VerifiedCount() + n_drafted_; }
  RowSlot NewRow(int layer, int head, int row_idx) override;

 private:
  KvShape shape_;
  PackedKv body_;
  int n_verified_ = 0;
  int n_drafted_ = 0;
  int capacity_ = 0;                                  // tail slots
  std::vector<AlignedBuffer> tail_;                   // [layer * n_kv_heads + head]: keys, values, steps
  std::vector<kernels::SlotRun> tail_runs_;           // one run per head
};

}  // namespace vericache::kv
