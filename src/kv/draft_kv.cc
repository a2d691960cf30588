#include "kv/draft_kv.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/i16_slots.h"

namespace vericache::kv {
namespace {

constexpr int kFirstCapacity = 256;  // a tail of one refresh interval and its drafts

}  // namespace

DraftKv::DraftKv(const KvShape& shape) : shape_(shape), layout_(shape, 0) {
  tail_runs_.resize(static_cast<size_t>(shape.HeadCount()));
}

std::byte* DraftKv::TailLayer(int layer) {
  return tail_.data() + static_cast<size_t>(layer) * layout_.Bytes();
}

RowSlot DraftKv::TailRow(int layer, int head, int slot) {
  VC_DCHECK(slot >= 0 && slot < layout_.SlotCount(), "slot {} of {}", slot, layout_.SlotCount());
  return RowOf(layout_, TailLayer(layer), head, slot);
}

const kernels::SlotRun& DraftKv::TailRun(int layer, int head) const {
  return tail_runs_[shape_.HeadIndex(layer, head)];
}

void DraftKv::Reserve(int n_rows) {
  const int n_live = n_verified_ + n_drafted_;
  const int n_wanted = n_live + n_rows;
  if (n_wanted <= layout_.SlotCount()) return;
  int capacity = std::max(kFirstCapacity, 2 * layout_.SlotCount());
  while (capacity < n_wanted) capacity *= 2;

  const BlockLayout grown(shape_, capacity);
  AlignedBuffer memory(grown.Bytes() * static_cast<size_t>(shape_.n_layers));
  for (int layer = 0; layer < shape_.n_layers; ++layer) {
    std::byte* block = memory.data() + static_cast<size_t>(layer) * grown.Bytes();
    for (int head = 0; head < shape_.n_kv_heads; ++head) {
      kernels::SlotRun& run = tail_runs_[shape_.HeadIndex(layer, head)];
      for (int slot = 0; slot < n_live; ++slot) {
        CopyI16Slot(run, slot, shape_.head_dim, RowOf(grown, block, head, slot));
      }
      run = RunOf(grown, block, head);
    }
  }
  tail_ = std::move(memory);
  layout_ = grown;
}

// In place: a row moves to a lower slot, whose own row has moved before or is gone.
void DraftKv::DropFirst(int n_rows) {
  n_verified_ -= n_rows;
  if (n_rows == 0) return;
  for (int layer = 0; layer < shape_.n_layers; ++layer) {
    for (int head = 0; head < shape_.n_kv_heads; ++head) {
      for (int slot = 0; slot < n_verified_; ++slot) {
        CopyI16Slot(TailRun(layer, head), slot + n_rows, shape_.head_dim,
                    TailRow(layer, head, slot));
      }
    }
  }
}

void DraftKv::SetBody(PackedKv body) {
  VC_CHECK(n_drafted_ == 0, "{} drafted rows", n_drafted_);
  VC_CHECK(body.TokenCount() == 0 || body.Shape() == shape_, "a body of another shape");
  const int n_dropped = body.TokenCount() - BodyEnd();
  const bool is_inside = n_dropped >= 0 && n_dropped <= n_verified_;
  DropFirst(is_inside ? n_dropped : n_verified_);
  body_ = std::move(body);
}

void DraftKv::CatchUp(const FullKv& full) {
  VC_CHECK(n_drafted_ == 0, "{} drafted rows", n_drafted_);
  const int begin = VerifiedCount();
  const int n_new = full.Length() - begin;
  VC_CHECK(n_new >= 0, "{} tokens, but the full KV has {}", begin, full.Length());
  Reserve(n_new);
  std::vector<Segment> segments;
  for (int layer = 0; layer < shape_.n_layers; ++layer) {
    for (int head = 0; head < shape_.n_kv_heads; ++head) {
      segments.clear();
      full.Segments(layer, head, segments);
      for (int row = 0; row < n_new; ++row) {
        const int token = begin + row;
        const auto block_idx = static_cast<size_t>(token / kBlockTokens);
        CopyI16Slot(segments.front().runs[block_idx], token % kBlockTokens, shape_.head_dim,
                    TailRow(layer, head, n_verified_ + row));
      }
    }
  }
  n_verified_ += n_new;
}

void DraftKv::Commit(int n_rows) {
  VC_CHECK(n_rows >= 0 && n_verified_ + n_drafted_ + n_rows <= layout_.SlotCount(),
           "{} rows behind {} + {}, room for {}", n_rows, n_verified_, n_drafted_,
           layout_.SlotCount());
  n_drafted_ += n_rows;
}

void DraftKv::Rollback() { n_drafted_ = 0; }

void DraftKv::AcceptDrafted() { n_verified_ += std::exchange(n_drafted_, 0); }

size_t DraftKv::Bytes() const {
  return body_.Bytes() + static_cast<size_t>(n_verified_) * FullKvBytesPerToken(shape_);
}

void DraftKv::Segments(int layer, int head, std::vector<Segment>& out) const {
  body_.Segments(layer, head, out);
  out.push_back({.n_slots = n_verified_ + n_drafted_,
                 .runs = {&TailRun(layer, head), 1},
                 .first_position = Position{BodyEnd()},
                 .is_causal = true});
}

RowSlot DraftKv::NewRow(int layer, int head, int row_idx) {
  return TailRow(layer, head, n_verified_ + n_drafted_ + row_idx);
}

}  // namespace vericache::kv
