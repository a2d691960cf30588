#include "model/query_tap.h"

#include <algorithm>

#include "base/check.h"

namespace vericache::model {

QueryTap::QueryTap(const QueryShape& shape, int n_window, int n_slack)
    : shape_(shape), n_window_(n_window) {
  VC_CHECK(n_window > 0 && n_slack >= 0, "window {}, slack {}", n_window, n_slack);
  positions_.assign(static_cast<size_t>(n_window + n_slack), Position(-1));
  q_.resize(static_cast<size_t>(shape.n_layers) * positions_.size() *
            static_cast<size_t>(shape.n_heads) * static_cast<size_t>(shape.head_dim));
}

void QueryTap::BeginPass(Position first, int n_rows) {
  const int n_slots = static_cast<int>(positions_.size());
  oldest_wanted_ = std::max(first, first + (n_rows - n_slots));
  for (Position p = oldest_wanted_; p < first + n_rows; ++p) positions_[SlotOf(p)] = p;
}

size_t QueryTap::Offset(int layer, Position position) const {
  const size_t slot = static_cast<size_t>(layer) * positions_.size() + SlotOf(position);
  return slot * static_cast<size_t>(shape_.n_heads) * static_cast<size_t>(shape_.head_dim);
}

void QueryTap::Store(int layer, int head, Position position, const float* q) {
  const auto head_dim = static_cast<size_t>(shape_.head_dim);
  std::copy_n(q, head_dim,
              q_.begin() + static_cast<std::ptrdiff_t>(Offset(layer, position) +
                                                       static_cast<size_t>(head) * head_dim));
}

std::vector<Position> QueryTap::Window(Position end) const {
  std::vector<Position> window;
  for (int i = n_window_; i > 0; --i) {
    const Position position(end.value - i);
    if (position.value < 0) continue;
    if (positions_[SlotOf(position)] == position) {
      window.push_back(position);
    } else {
      window.clear();  // a gap: what lies before it is not the newest
    }
  }
  return window;
}

const float* QueryTap::Queries(int layer, Position position) const {
  VC_DCHECK(positions_[SlotOf(position)] == position, "position {} is not kept", position.value);
  return q_.data() + Offset(layer, position);
}

}  // namespace vericache::model
