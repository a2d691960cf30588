// The queries (after RoPE) of a sequence's newest tokens: what query-aware compressors ask for.
//
// A ring by position, one per layer. It has room behind the window, so that queries of rejected
// rows neither stay (their positions are computed again) nor push out the window.
// Threads: BeginPass by one member; Store of distinct (layer, head, position) may run concurrently.
#pragma once

#include <vector>

#include "base/ids.h"

namespace vericache::model {

struct QueryShape {
  int n_layers = 0;
  int n_heads = 0;
  int head_dim = 0;
};

class QueryTap {
 public:
  // Keeps the newest n_window tokens, with up to n_slack rows behind them that may be rejected.
  QueryTap(const QueryShape& shape, int n_window, int n_slack);

  const QueryShape& Shape() const { return shape_; }
  int WindowSize() const { return n_window_; }

  // Announces rows at positions [first, first + n_rows).
  void BeginPass(Position first, int n_rows);
  // Whether a row of this pass is new enough to be stored.
  bool Wants(Position position) const { return position >= oldest_wanted_; }
  // Shapes: q [head_dim].
  void Store(int layer, int head, Position position, const float* q);

  // Positions kept of the newest n_window tokens before `end`, ascending: fewer than n_window if
  // the sequence is shorter or passed by untapped.
  std::vector<Position> Window(Position end) const;
  // The queries of all heads of one token of the window. Shapes: [n_heads, head_dim].
  const float* Queries(int layer, Position position) const;

 private:
  size_t SlotOf(Position position) const {
    return static_cast<size_t>(position.value) % positions_.size();
  }
  size_t Offset(int layer, Position position) const;

  QueryShape shape_;
  int n_window_;
  Position oldest_wanted_{0};
  std::vector<Position> positions_;  // [slots]; -1: empty
  std::vector<float> q_;             // [n_layers, slots, n_heads, head_dim]
};

}  // namespace vericache::model
