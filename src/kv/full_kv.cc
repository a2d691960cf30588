#include "kv/full_kv.h"

#include <algorithm>
#include <cstring>

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
  const int n_more = std::max(0, BlocksFor(n_tokens) - HeldTokens() / kBlockTokens);
  const int n_copies = n_tokens > length_ && IsNextBlockShared() ? 1 : 0;
  if (n_more + n_copies == 0) return {};
  auto allocated = pool_.Allocate((n_more + n_copies) * Shape().n_layers);
  VC_RETURN_IF_ERROR(allocated);
  const auto n_copied = static_cast<size_t>(n_copies * Shape().n_layers);
  if (n_copies > 0) ReplaceNextBlock(std::span(*allocated).first(n_copied));
  for (const BlockId block : std::span(*allocated).subspan(n_copied)) {
    const int layer = static_cast<int>(blocks_.size()) % Shape().n_layers;
    blocks_.push_back(block);
    AppendRuns(layer, pool_.Data(block));
  }
  return {};
}

void FullKv::Share(const FullKv& other, int n_tokens) {
  VC_CHECK(blocks_.empty() && &pool_ == &other.pool_, "{} blocks held", blocks_.size());
  VC_CHECK(n_tokens >= 0 && n_tokens <= other.length_, "{} of {} tokens", n_tokens, other.length_);
  const auto n_shared = static_cast<size_t>(BlocksFor(n_tokens));
  const auto shared =
      std::span(other.blocks_).first(n_shared * static_cast<size_t>(Shape().n_layers));
  pool_.Share(shared);
  blocks_.assign(shared.begin(), shared.end());
  for (size_t i = 0; i < runs_.size(); ++i) {
    const auto runs = std::span(other.runs_[i]).first(n_shared);
    runs_[i].assign(runs.begin(), runs.end());
  }
  length_ = n_tokens;
}

bool FullKv::IsNextBlockShared() const {
  if (length_ >= HeldTokens()) return false;
  const auto first = static_cast<size_t>(length_ / kBlockTokens * Shape().n_layers);
  return pool_.IsShared(blocks_[first]);  // layers are shared together
}

void FullKv::ReplaceNextBlock(std::span<const BlockId> copies) {
  const auto block_idx = static_cast<size_t>(length_ / kBlockTokens);
  const auto replaced = std::span(blocks_).subspan(block_idx * copies.size(), copies.size());
  for (size_t layer = 0; layer < copies.size(); ++layer) {
    std::byte* copy = pool_.Data(copies[layer]);
    std::memcpy(copy, pool_.Data(replaced[layer]), pool_.Layout().Bytes());
    for (int head = 0; head < Shape().n_kv_heads; ++head) {
      runs_[Shape().HeadIndex(static_cast<int>(layer), head)][block_idx] =
          RunOf(pool_.Layout(), copy, head);
    }
  }
  pool_.Free(replaced);
  std::copy(copies.begin(), copies.end(), replaced.begin());
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

BlockId FullKv::BlockAt(int block_idx, int layer) const {
  return blocks_[static_cast<size_t>(block_idx) * static_cast<size_t>(Shape().n_layers) +
                 static_cast<size_t>(layer)];
}

std::span<const std::byte> FullKv::BlockBytes(int block_idx, int layer) const {
  return {pool_.Data(BlockAt(block_idx, layer)), pool_.Layout().Bytes()};
}

std::span<std::byte> FullKv::NewBlockBytes(int block_idx, int layer) {
  VC_CHECK(block_idx * kBlockTokens >= length_, "block {} of {} tokens", block_idx, length_);
  return {pool_.Data(BlockAt(block_idx, layer)), pool_.Layout().Bytes()};
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
  std::byte* block = pool_.Data(BlockAt(slot / kBlockTokens, layer));
  return RowOf(pool_.Layout(), block, head, slot % kBlockTokens);
}

}  // namespace vericache::kv
