#include "kv/full_kv.h"

#include "base/check.h"

namespace vericache::kv {
namespace {

int BlocksFor(int n_tokens) { return (n_tokens + kBlockTokens - 1) / kBlockTokens; }

}  // namespace

FullKv::FullKv(BlockPool& pool) : pool_(pool) {
  runs_.resize(static_cast<size_t>(pool.Shape().HeadCount()));
}

FullKv::~FullKv() { pool_.Free(blocks_); }

const KvShape& FullKv::Shape() const { return pool_.Shape(); }

int FullKv::HeldTokens() const {
  return static_cast<int>(blocks_.size()) / Shape().n_layers * kBlockTokens;
}

Status FullKv::Reserve(int n_tokens) {
  const int n_more = BlocksFor(n_tokens) - HeldTokens() / kBlockTokens;
  if (n_more <= 0) return {};
  auto allocated = pool_.Allocate(n_more * Shape().n_layers);
  VC_RETURN_IF_ERROR(allocated);
  for (const BlockId block : *allocated) {
    const int layer = static_cast<int>(blocks_.size()) % Shape().n_layers;
    blocks_.push_back(block);
    AppendRuns(layer, pool_.Data(block));
  }
  return {};
}

void FullKv::AppendRuns(int layer, const std::byte* block) {
  for (int head = 0; head < Shape().n_kv_heads; ++head) {
    runs_[Shape().HeadIndex(layer, head)].push_back(RunOf(pool_.Layout(), block, head));
  }
}

void FullKv::Commit(int n_rows) {
  VC_CHECK(n_rows >= 0 && length_ + n_rows <= HeldTokens(), "{} tokens + {} rows, room for {}",
           length_, n_rows, HeldTokens());
  length_ += n_rows;
}

void FullKv::Truncate(int n_tokens) {
  VC_CHECK(n_tokens >= 0 && n_tokens <= length_, "to {} of {} tokens", n_tokens, length_);
  length_ = n_tokens;
  const auto n_kept = static_cast<size_t>(BlocksFor(n_tokens));
  const size_t n_kept_blocks = n_kept * static_cast<size_t>(Shape().n_layers);
  pool_.Free(std::span(blocks_).subspan(n_kept_blocks));
  blocks_.resize(n_kept_blocks);
  for (auto& runs : runs_) runs.resize(n_kept);
}

size_t FullKv::HeldBytes() const { return blocks_.size() * pool_.Layout().Bytes(); }

size_t FullKv::TokenBytes() const {
  return static_cast<size_t>(length_) * FullKvBytesPerToken(Shape());
}

void FullKv::Segments(int layer, int head, std::vector<Segment>& out) const {
  out.push_back({.format = kernels::KvFormat::kI16,
                 .n_slots = length_,
                 .runs = runs_[Shape().HeadIndex(layer, head)],
                 .is_causal = true});
}

RowSlot FullKv::NewRow(int layer, int head, int row_idx) {
  const int slot = length_ + row_idx;
  VC_DCHECK(row_idx >= 0 && slot < HeldTokens(), "row {} behind {} tokens, room for {}", row_idx,
            length_, HeldTokens());
  const auto block_idx = static_cast<size_t>(slot / kBlockTokens);
  const auto n_layers = static_cast<size_t>(Shape().n_layers);
  const BlockId block = blocks_[block_idx * n_layers + static_cast<size_t>(layer)];
  return RowOf(pool_.Layout(), pool_.Data(block), head, slot % kBlockTokens);
}

}  // namespace vericache::kv
