#include "decode/drafter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vericache::decode {
Drafter::Drafter(DrafterParts parts)
    : compressor_(std::move(parts.compressor)),
      traits_(compressor_->GetTraits()),
      tail_(parts.tail),
      seed_(parts.seed),
      kernels_(parts.kernels),
      kv_(parts.shape) {
  VC_CHECK(traits_.body_grain > 0 && tail_.n_recent > 0 && tail_.interval > 0,
           "grain {}, recent {}, interval {}", traits_.body_grain, tail_.n_recent, tail_.interval);
  if (traits_.needs == compress::Needs::kWindowQueries) {
    tap_.emplace(parts.queries, traits_.n_window, kMaxDraftLen + 1);
  }
}

int Drafter::BodyEndFor(int n_tokens) const {
  return std::max(0, n_tokens - tail_.n_recent) / traits_.body_grain * traits_.body_grain;
}

int Drafter::CompressionInterval() const { return std::max(tail_.interval, traits_.body_grain); }

bool Drafter::NeedsCompression(int n_tokens) const {
  if (BodyEndFor(n_tokens) <= kv_.BodyEnd()) return false;
  if (n_compressions_ == 0) return true;
  return n_tokens - kv_.BodyEnd() >= tail_.n_recent + CompressionInterval();
}

compress::Job Drafter::BeginCompression(const kv::FullKv* full) {
  VC_CHECK(is_done_ && tokens_.empty(), "compression during a draft");
  const bool reads_full =
      full != nullptr && (n_compressions_ == 0 || traits_.refresh == compress::Refresh::kFromFull);
  if (full != nullptr && !reads_full) kv_.CatchUp(*full);
  const int n_tokens = full != nullptr ? full->Length() : kv_.VerifiedCount();
  VC_CHECK(NeedsCompression(n_tokens), "nothing to compress in {} tokens", n_tokens);
  FillHints(n_tokens);
  return {.source = reads_full ? static_cast<const kv::KvSource*>(full) : &kv_,
          .hints = &hints_,
          .end = Position{BodyEndFor(n_tokens)},
          .round = n_compressions_,
          .seed = seed_,
          .kernels = kernels_};
}

void Drafter::FillHints(int n_tokens) {
  if (!tap_) return;
  const model::QueryShape& shape = tap_->Shape();
  compress::WindowQueries& window = hints_.window;
  window.n_layers = shape.n_layers;
  window.n_heads = shape.n_heads;
  window.head_dim = shape.head_dim;
  window.positions = tap_->Window(Position{n_tokens});
  window.q.resize(static_cast<size_t>(shape.n_layers));
  const auto per_token = static_cast<size_t>(shape.n_heads) * static_cast<size_t>(shape.head_dim);
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    std::vector<float>& q = window.q[static_cast<size_t>(layer)];
    q.clear();
    for (const Position position : window.positions) {
      const float* queries = tap_->Queries(layer, position);
      q.insert(q.end(), queries, queries + per_token);
    }
  }
}

void Drafter::EndCompression(kv::PackedKv body) {
  kv_.SetBody(std::move(body));
  ++n_compressions_;
}

void Drafter::Begin(const Task& task) {
  VC_CHECK(is_done_ && tokens_.empty(), "a draft is under way");
  VC_CHECK(task.n_tokens >= 1, "n_tokens = {}", task.n_tokens);
  kv_.CatchUp(*task.full);
  kv_.Reserve(task.n_tokens);
  sampler_ = task.committed->Clone();
  pending_ = task.pending;
  n_wanted_ = task.n_tokens;
  is_done_ = false;
}

void Drafter::Suggest(std::vector<TokenId> tokens) {
  VC_CHECK(!is_done_ && static_cast<int>(tokens.size()) < WantedCount(), "{} of {} suggested",
           tokens.size(), WantedCount());
  suggested_ = std::move(tokens);
}

model::RowGroup Drafter::NextRows() {
  VC_CHECK(!is_done_, "the draft is done");
  row_tokens_.assign(1, tokens_.empty() ? pending_ : tokens_.back());
  row_tokens_.insert(row_tokens_.end(), suggested_.begin(), suggested_.end());
  return {.tokens = row_tokens_,
          .first_position = Position{kv_.TokenCount()},
          .kv = &kv_,
          .logits = model::LogitRows::kAll};
}

void Drafter::Consume(const model::GroupLogits& logits) {
  int n_rows = 0;  // whose tokens are drafted
  bool goes_on = true;
  while (goes_on && n_rows < logits.n_rows) {
    const auto row = static_cast<size_t>(n_rows);
    const auto token =
        logits.is_finite[row]
            ? sampler_->Sample(logits.Row(n_rows), Position{kv_.TokenCount() + n_rows + 1})
            : std::nullopt;
    is_done_ = !token;
    if (is_done_) break;
    ++n_rows;
    sampler_->Accept(*token);
    tokens_.push_back(*token);
    goes_on = row < suggested_.size() && *token == suggested_[row];
  }
  kv_.Commit(n_rows);
  suggested_.clear();
  is_done_ = is_done_ || WantedCount() == 0;
}

void Drafter::End() {
  VC_CHECK(is_done_, "the draft is under way");
  kv_.Rollback();
  tokens_.clear();
}

}  // namespace vericache::decode
