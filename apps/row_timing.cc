#include "apps/row_timing.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace vericache::apps {
namespace {

double MatrixMacs(const model::Model& model) {
  const auto macs = [](const kernels::PackedMatrix& matrix) {
    return static_cast<double>(matrix.n) * static_cast<double>(matrix.k);
  };
  double sum = macs(model.OutputMatrix());
  for (const model::LayerWeights& layer : model.GetWeights().layers) {
    for (const auto* matrix :
         {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.gate, &layer.up, &layer.down}) {
      sum += macs(*matrix);
    }
  }
  return sum;
}

size_t PoolBytes(const kv::KvShape& shape, int n_tokens) {
  const auto n_blocks = static_cast<size_t>((n_tokens + kv::kBlockTokens - 1) / kv::kBlockTokens);
  return n_blocks * static_cast<size_t>(shape.n_layers) * kv::BlockLayout(shape).Bytes();
}

}  // namespace

TimedSequence::TimedSequence(const model::Model& model, const kernels::KernelTable& kernels,
                             ThreadTeam& team, int n_tokens, int max_rows)
    : model_(model),
      max_rows_(max_rows),
      pool_(model.Config().Kv(), PoolBytes(model.Config().Kv(), n_tokens)),
      kv_(pool_),
      pass_(model, kernels, team, max_rows) {
  for (int i = 0; i < n_tokens; ++i) {  // any tokens do: time does not depend on them
    tokens_.emplace_back(static_cast<int32_t>(int64_t{i} * 7919 % model.Config().n_vocab));
  }
}

Result<std::unique_ptr<TimedSequence>> TimedSequence::Create(const model::Model& model,
                                                             const kernels::KernelTable& kernels,
                                                             ThreadTeam& team, int n_tokens,
                                                             int max_rows) {
  if (n_tokens > model.Config().n_context) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "the deepest measurement needs {} tokens (depth and the rows behind it), but "
                     "the context holds {}",
                     n_tokens, model.Config().n_context);
  }
  std::unique_ptr<TimedSequence> sequence(
      new TimedSequence(model, kernels, team, n_tokens, max_rows));
  VC_RETURN_IF_ERROR(sequence->kv_.Reserve(n_tokens));
  return sequence;
}

bool TimedSequence::Run(int n_rows, model::LogitRows logits) {
  const auto first = static_cast<size_t>(kv_.Length());
  const model::RowGroup group{
      .tokens = std::span(tokens_).subspan(first, static_cast<size_t>(n_rows)),
      .first_position = Position{kv_.Length()},
      .kv = &kv_,
      .logits = logits,
      .tap = nullptr};
  return pass_.Run({&group, 1})[0].are_all_rows_finite;
}

Status TimedSequence::GrowTo(int depth) {
  while (kv_.Length() < depth) {
    const int n_rows = std::min(max_rows_, depth - kv_.Length());
    if (!Run(n_rows, model::LogitRows::kLast)) {
      return MakeError(ErrorCode::kDataLoss, "the model computes NaN or infinity near token {}",
                       kv_.Length());
    }
    kv_.Commit(n_rows);
  }
  return {};
}

RowTiming TimedSequence::Time(int n_rows, model::LogitRows logits, int n_reps) {
  std::vector<double> seconds;
  Run(n_rows, logits);  // warms caches and buffers
  for (int rep = 0; rep < n_reps; ++rep) {
    const auto begin = std::chrono::steady_clock::now();
    Run(n_rows, logits);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const model::ModelConfig& config = model_.Config();
  const double attention_macs =
      2.0 * config.n_layers * config.n_heads * config.head_dim * (kv_.Length() + n_rows / 2.0);
  return {.depth = kv_.Length(),
          .n_rows = n_rows,
          .min_s = seconds.front(),
          .median_s = seconds[seconds.size() / 2],
          .read_bytes = model_.PassWeightBytes() + kv_.TokenBytes(),
          .n_macs = n_rows * (MatrixMacs(model_) + attention_macs)};
}

}  // namespace vericache::apps
