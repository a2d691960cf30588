#include "model/pass_rows.h"

#include <algorithm>

#include "base/check.h"

namespace vericache::model {

void PassRows::Begin(std::span<const RowGroup> groups, const ModelConfig& config) {
  rows_.clear();
  position_end_ = 0;
  groups_.clear();
  taps_.clear();
  n_wanted_.clear();
  wanted_.clear();
  for (const RowGroup& group : groups) BeginGroup(group, config);
  is_finite_.assign(rows_.size(), 1);
}

void PassRows::BeginGroup(const RowGroup& group, const ModelConfig& config) {
  const int group_idx = static_cast<int>(groups_.size());
  const int n_rows = static_cast<int>(group.tokens.size());
  VC_CHECK(n_rows >= 1 && group.kv != nullptr && group.kv->Shape() == config.Kv(),
           "group {} of {} rows", group_idx, n_rows);
  VC_CHECK(group.first_position.value == group.kv->TokenCount(), "position {} behind {} tokens",
           group.first_position.value, group.kv->TokenCount());
  const int first_row = Count();
  for (int i = 0; i < n_rows; ++i) {
    const TokenId token = group.tokens[static_cast<size_t>(i)];
    VC_CHECK(token.value >= 0 && token.value < config.n_vocab, "token {} of {}", token.value,
             config.n_vocab);
    rows_.push_back({.token = token, .position = group.first_position + i, .group_idx = group_idx});
  }
  const int n_wanted = group.logits == LogitRows::kNone   ? 0
                       : group.logits == LogitRows::kLast ? 1
                                                          : n_rows;
  for (int i = n_rows - n_wanted; i < n_rows; ++i) wanted_.push_back(first_row + i);
  n_wanted_.push_back(n_wanted);
  groups_.push_back({.kv = group.kv, .first_row = first_row, .n_rows = n_rows});
  taps_.push_back(group.tap);
  if (group.tap != nullptr) group.tap->BeginPass(group.first_position, n_rows);
  position_end_ = std::max(position_end_, group.first_position.value + n_rows);
}

kv::RowSlot PassRows::NewSlot(int layer, int head, int row) const {
  const attend::Group& group = groups_[static_cast<size_t>(Row(row).group_idx)];
  return group.kv->NewRow(layer, head, row - group.first_row);
}

void PassRows::Tap(int layer, int head, int row, const float* q) const {
  QueryTap* tap = taps_[static_cast<size_t>(Row(row).group_idx)];
  if (tap == nullptr || !tap->Wants(Row(row).position)) return;
  tap->Store(layer, head, Row(row).position, q);
}

std::span<const GroupLogits> PassRows::Collect(const float* logits, int n_vocab) {
  wanted_finite_.clear();
  for (const int row : wanted_) wanted_finite_.push_back(is_finite_[static_cast<size_t>(row)]);
  results_.clear();
  size_t n_before = 0;  // wanted rows of the groups before
  for (size_t i = 0; i < groups_.size(); ++i) {
    const auto n_wanted = static_cast<size_t>(n_wanted_[i]);
    const auto first = is_finite_.begin() + groups_[i].first_row;
    const bool are_all_finite =
        std::find(first, first + groups_[i].n_rows, 0) == first + groups_[i].n_rows;
    results_.push_back({.n_rows = n_wanted_[i],
                        .n_vocab = n_vocab,
                        .data = logits + n_before * static_cast<size_t>(n_vocab),
                        .is_finite = std::span(wanted_finite_).subspan(n_before, n_wanted),
                        .are_all_rows_finite = are_all_finite});
    n_before += n_wanted;
  }
  return results_;
}

}  // namespace vericache::model
