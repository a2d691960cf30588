#include "apps/row_timing.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.h"

namespace vericache::apps {
namespace {

double Macs(const kernels::PackedMatrix& matrix) {
  return static_cast<double>(matrix.n) * static_cast<double>(matrix.k);
}

double LayerMacs(const model::Model& model) {
  double sum = 0;
  for (const model::LayerWeights& layer : model.GetWeights().layers) {
    for (const auto* matrix :
         {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.gate, &layer.up, &layer.down}) {
      sum += Macs(*matrix);
    }
  }
  return sum;
}

int BlockCount(int n_tokens) { return (n_tokens + kv::kBlockTokens - 1) / kv::kBlockTokens; }

size_t PoolBytes(const kv::KvShape& shape, const TimedSequences::Room& room) {
  return static_cast<size_t>(room.n_sequences) * static_cast<size_t>(BlockCount(room.n_tokens)) *
         static_cast<size_t>(shape.n_layers) * kv::BlockLayout(shape).Bytes();
}

}  // namespace

TimedSequences::TimedSequences(const model::Model& model, const kernels::KernelTable& kernels,
                               ThreadTeam& team, const Room& room)
    : model_(model),
      room_(room),
      pool_(model.Config().Kv(), PoolBytes(model.Config().Kv(), room)),
      pass_(model, kernels, team, std::max(room.max_rows, room.n_sequences)) {
  for (int i = 0; i < room.n_tokens; ++i) {  // any tokens do: time does not depend on them
    tokens_.emplace_back(static_cast<int32_t>(int64_t{i} * 7919 % model.Config().n_vocab));
  }
  for (int i = 0; i < room.n_sequences; ++i) kvs_.push_back(std::make_unique<kv::FullKv>(pool_));
}

Result<std::unique_ptr<TimedSequences>> TimedSequences::Create(const model::Model& model,
                                                               const kernels::KernelTable& kernels,
                                                               ThreadTeam& team, const Room& room) {
  if (room.n_tokens > model.Config().n_context) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "the deepest measurement needs {} tokens (depth and the rows behind it), but "
                     "the context holds {}",
                     room.n_tokens, model.Config().n_context);
  }
  std::unique_ptr<TimedSequences> sequences(new TimedSequences(model, kernels, team, room));
  for (const auto& kv : sequences->kvs_) VC_RETURN_IF_ERROR(kv->Reserve(room.n_tokens));
  return sequences;
}

int TimedSequences::ChunkRows() const { return std::max(room_.max_rows / room_.n_sequences, 1); }

bool TimedSequences::Run(std::span<const std::unique_ptr<kv::FullKv>> kvs, int n_rows,
                         model::LogitRows logits) {
  std::vector<model::RowGroup> groups;
  for (const auto& kv : kvs) {
    const auto first = static_cast<size_t>(kv->Length());
    groups.push_back({.tokens = std::span(tokens_).subspan(first, static_cast<size_t>(n_rows)),
                      .first_position = Position{kv->Length()},
                      .kv = kv.get(),
                      .logits = logits,
                      .tap = nullptr});
  }
  logits_ = pass_.Run(groups);
  return std::all_of(logits_.begin(), logits_.end(),
                     [](const model::GroupLogits& one) { return one.are_all_rows_finite; });
}

Status TimedSequences::SetDepth(int depth) {
  if (depth > room_.n_tokens) {
    return MakeError(ErrorCode::kInvalidArgument, "depth {} is beyond the room for {} tokens",
                     depth, room_.n_tokens);
  }
  kv::FullKv& first = *kvs_.front();
  if (depth < first.Length()) {
    first.Truncate(depth);
    VC_RETURN_IF_ERROR(first.Reserve(room_.n_tokens));
  }
  while (first.Length() < depth) {
    const int n_rows = std::min(room_.max_rows, depth - first.Length());
    if (!Run(std::span(kvs_).first(1), n_rows, model::LogitRows::kLast)) {
      return MakeError(ErrorCode::kDataLoss, "the model computes NaN or infinity near token {}",
                       first.Length());
    }
    first.Commit(n_rows);
  }
  for (const auto& kv : std::span(kvs_).subspan(1)) {
    VC_RETURN_IF_ERROR(Copy(first, depth, *kv));
  }
  return {};
}

Status TimedSequences::TakeTokens(const TimedSequences& former) {
  return Copy(*former.kvs_.front(), std::min(former.Depth(), room_.n_tokens), *kvs_.front());
}

Status TimedSequences::Copy(const kv::FullKv& from, int n_tokens, kv::FullKv& to) {
  to.Truncate(0);
  VC_RETURN_IF_ERROR(to.Reserve(room_.n_tokens));
  for (int block = 0; block < BlockCount(n_tokens); ++block) {
    for (int layer = 0; layer < from.Shape().n_layers; ++layer) {
      const auto bytes = from.BlockBytes(block, layer);
      std::memcpy(to.NewBlockBytes(block, layer).data(), bytes.data(), bytes.size());
    }
  }
  to.Commit(n_tokens);
  return {};
}

PassTiming TimedSequences::Time(int n_rows, model::LogitRows logits) {
  return TimeChunks(n_rows, logits, /*is_measuring=*/false);
}

PassTiming TimedSequences::TimeParts(int n_rows, model::LogitRows logits) {
  return TimeChunks(n_rows, logits, /*is_measuring=*/true);
}

PassTiming TimedSequences::TimeChunks(int n_rows, model::LogitRows logits, bool is_measuring) {
  const int depth = Depth();
  pass_.MeasureParts(is_measuring);
  PassTiming timing;
  for (int n_done = 0; n_done < n_rows;) {
    const int n_chunk = std::min(ChunkRows(), n_rows - n_done);
    n_done += n_chunk;
    const bool wants_logits = n_done == n_rows || logits == model::LogitRows::kAll;
    const auto begin = std::chrono::steady_clock::now();
    Run(kvs_, n_chunk, wants_logits ? logits : model::LogitRows::kNone);
    timing.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const model::PassTimes parts = is_measuring ? pass_.PartTimes() : model::PassTimes{};
    for (size_t i = 0; i < model::kPassPartCount; ++i) timing.parts.seconds[i] += parts.seconds[i];
    if (n_done == n_rows) break;
    for (const auto& kv : kvs_) kv->Commit(n_chunk);
  }
  for (const auto& kv : kvs_) {
    if (kv->Length() == depth) continue;
    kv->Truncate(depth);
    VC_CHECK(kv->Reserve(room_.n_tokens).has_value(), "the blocks were held a moment ago");
  }
  return timing;
}

PassCost TimedSequences::Cost(int n_rows, model::LogitRows logits) const {
  const model::ModelConfig& config = model_.Config();
  const auto n_sequences = static_cast<size_t>(room_.n_sequences);
  const double rows = static_cast<double>(n_sequences) * n_rows;
  PassCost cost;
  for (int n_done = 0; n_done < n_rows; n_done += ChunkRows()) {
    cost.weight_bytes += model_.PassWeightBytes();
    cost.kv_bytes +=
        n_sequences * static_cast<size_t>(Depth() + n_done) * kv::FullKvBytesPerToken(config.Kv());
  }
  const double n_logits =
      logits == model::LogitRows::kAll ? rows : static_cast<double>(n_sequences);
  cost.matrix_macs = rows * LayerMacs(model_) + n_logits * Macs(model_.OutputMatrix());
  cost.attention_macs =
      rows * 2.0 * config.n_layers * config.n_heads * config.head_dim * (Depth() + n_rows / 2.0);
  return cost;
}

std::span<const float> TimedSequences::LastLogits() const {
  const model::GroupLogits& last = logits_.back();
  return last.Row(last.n_rows - 1);
}

}  // namespace vericache::apps
