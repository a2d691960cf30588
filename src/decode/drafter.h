// The draft side of a session: a compressed KV of the same model, and the tokens drafted over it.
//
// The draft KV is a packed body and an exact tail. Verified rows enter the tail from the full KV;
// when the tail has grown by an interval, the body is made anew and takes over all of it but the
// newest tokens. Only verified tokens are ever compressed: merges cannot be undone. Everything is
// done when a draft is about to begin, so a session that drafts nothing pays nothing.
// Threads: one user at a time. Source: VeriCache (arXiv 2605.17613); docs/decisions/0021.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "compress/compressor.h"
#include "decode/sampler.h"
#include "kv/draft_kv.h"
#include "kv/full_kv.h"
#include "model/forward.h"
#include "model/query_tap.h"

namespace vericache::decode {

struct TailPolicy {
  int n_recent = 64;   // newest verified tokens that stay exact
  int interval = 256;  // tokens by which the tail grows before the body takes them over
};

struct DrafterParts {
  kv::KvShape shape;
  model::QueryShape queries;
  std::unique_ptr<compress::Compressor> compressor;
  TailPolicy tail;
  uint64_t seed = 0;
  const kernels::KernelTable* kernels = nullptr;
};

class Drafter {
 public:
  explicit Drafter(DrafterParts parts);

  // ---- the compressed KV ----
  // Where the body of n_tokens verified tokens may end; 0: too few to compress.
  int BodyEndFor(int n_tokens) const;
  // The body lags too far behind n_tokens verified tokens.
  bool NeedsCompression(int n_tokens) const;
  // What to compress now. Requires: NeedsCompression; no draft under way; `full`, or for a lossy
  // session null once the truth is gone.
  compress::Job BeginCompression(const kv::FullKv* full);
  void EndCompression(kv::PackedKv body);
  const compress::Compressor& GetCompressor() const { return *compressor_; }
  // Tokens that one compression serves.
  int CompressionInterval() const;
  // Collects queries from rows over the full KV; null if the method needs none.
  model::QueryTap* Tap() { return tap_ ? &*tap_ : nullptr; }
  kv::DraftKv& Kv() { return kv_; }
  const kv::DraftKv& Kv() const { return kv_; }

  // ---- one draft ----
  struct Task {
    const kv::FullKv* full = nullptr;
    const Sampler* committed = nullptr;
    TokenId pending;   // the newest token; its row comes first
    int n_tokens = 0;  // to draft, at least 1
  };
  void Begin(const Task& task);
  // Tokens that the next pass runs behind the newest one, in case the model drafts them too.
  // Requires: fewer than WantedCount.
  void Suggest(std::vector<TokenId> tokens);
  // Tokens still to draft.
  int WantedCount() const { return n_wanted_ - static_cast<int>(tokens_.size()); }
  int RowCount() const { return static_cast<int>(suggested_.size()) + 1; }
  // The newest token and the suggested ones: their logits give the next drafted tokens.
  model::RowGroup NextRows();
  // Takes those rows: drafts what each of them chooses, up to the first that differs from what was
  // suggested. The same acceptance as in a verify, but what it lets through is a draft still. A row
  // that went wrong, or after which no token is allowed, gives none and ends the draft: only the
  // truth may judge it.
  void Consume(const model::GroupLogits& logits);
  // The last token is one that nothing may follow.
  void Stop() { is_done_ = true; }
  bool IsDone() const { return is_done_; }
  std::span<const TokenId> Tokens() const { return tokens_; }
  // Forgets the drafted rows. Tokens() is empty afterwards.
  void End();

 private:
  void FillHints(int n_tokens);

  std::unique_ptr<compress::Compressor> compressor_;
  compress::Traits traits_;
  TailPolicy tail_;
  uint64_t seed_;
  const kernels::KernelTable* kernels_;
  kv::DraftKv kv_;
  std::optional<model::QueryTap> tap_;
  compress::Hints hints_;
  int n_compressions_ = 0;

  std::optional<Sampler> sampler_;
  TokenId pending_;
  std::vector<TokenId> tokens_;
  std::vector<TokenId> suggested_;
  std::vector<TokenId> row_tokens_;  // of the pass under way
  int n_wanted_ = 0;
  bool is_done_ = true;
};

}  // namespace vericache::decode
