// The rows of one pass: which token, position and sequence each is, which want logits, and which
// turned out not finite.
//
// Threads: Begin and Collect by one thread; the rest by all members of the team, distinct (layer,
//          head, row) at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "attend/plan.h"
#include "model/forward.h"

namespace vericache::model {

struct PassRow {
  TokenId token;
  Position position;
  int group_idx = 0;
};

class PassRows {
 public:
  // Requires: as Pass::Run.
  void Begin(std::span<const RowGroup> groups, const ModelConfig& config);

  int Count() const { return static_cast<int>(rows_.size()); }
  const PassRow& Row(int row) const { return rows_[static_cast<size_t>(row)]; }
  int PositionEnd() const { return position_end_; }
  // Rows with logits, group by group.
  const std::vector<int>& Wanted() const { return wanted_; }
  std::span<const attend::Group> Groups() const { return groups_; }

  // Where a row's K and V of one head go.
  kv::RowSlot NewSlot(int layer, int head, int row) const;
  // Gives a row's query to its sequence's tap, if it has one and wants it.
  void Tap(int layer, int head, int row, const float* q) const;
  // A NaN or infinity arose in this row.
  void Flag(int row) { std::atomic_ref(is_finite_[static_cast<size_t>(row)]).store(0); }

  // One entry per group. Shapes: logits [wanted rows, n_vocab]. The entries stay valid until the
  // next Begin.
  std::span<const GroupLogits> Collect(const float* logits, int n_vocab);

 private:
  void BeginGroup(const RowGroup& group, const ModelConfig& config);

  std::vector<PassRow> rows_;
  int position_end_ = 0;
  std::vector<attend::Group> groups_;
  std::vector<QueryTap*> taps_;  // [group]
  std::vector<int> n_wanted_;    // [group]
  std::vector<int> wanted_;
  std::vector<uint8_t> is_finite_;      // [row]
  std::vector<uint8_t> wanted_finite_;  // [wanted row]
  std::vector<GroupLogits> results_;    // [group]
};

}  // namespace vericache::model
