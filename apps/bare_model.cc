#include "apps/bare_model.h"

#include <algorithm>
#include <utility>

#include "apps/model_path.h"
#include "base/check.h"
#include "base/machine_limits.h"
#include "compress/registry.h"

namespace vericache::apps {

using Step = decode::Session::Step;

Result<BareModel> BareModel::Load(const MachineOptions& options) {
  BareModel bare;
  const auto path = ResolveModelPath(options.model);
  VC_RETURN_IF_ERROR(path);
  bare.path = *path;
  const auto kernels = kernels::SelectKernels(options.isa);
  VC_RETURN_IF_ERROR(kernels);
  bare.kernels = *kernels;
  const int n_cores = ReadMachineLimits().n_cores;
  bare.team = std::make_unique<ThreadTeam>(options.n_threads > 0 ? options.n_threads : n_cores);
  auto model = model::Model::Load(bare.path, *bare.team);
  VC_RETURN_IF_ERROR(model);
  bare.model = *std::move(model);
  auto tokenizer = model::Tokenizer::Load(bare.path);
  VC_RETURN_IF_ERROR(tokenizer);
  bare.tokenizer = *std::move(tokenizer);
  return bare;
}

size_t PoolBytesFor(const kv::KvShape& shape, int n_tokens, int n_sequences) {
  const auto n_blocks = static_cast<size_t>((n_tokens + kv::kBlockTokens - 1) / kv::kBlockTokens);
  return n_blocks * static_cast<size_t>(n_sequences) * static_cast<size_t>(shape.n_layers) *
         kv::BlockLayout(shape).Bytes();
}

Result<std::unique_ptr<LoneSession>> LoneSession::Make(const BareModel& model, model::Pass& pass,
                                                       kv::BlockPool& pool,
                                                       decode::Request request) {
  VC_CHECK(request.mode != decode::Mode::kVerified, "a verify chooses several tokens");
  const model::ModelConfig& config = model.model->Config();
  auto sampler = decode::Sampler::Make(request.sampling, *model.tokenizer, config.n_context);
  VC_RETURN_IF_ERROR(sampler);
  auto compressor = compress::MakeCompressor(request.compressor);
  VC_RETURN_IF_ERROR(compressor);
  if (!decode::UsesCompressor(request)) compressor->reset();
  auto session = std::make_unique<decode::Session>(
      std::move(request), decode::SessionParts{.tokenizer = model.tokenizer.get(),
                                               .pool = &pool,
                                               .sampler = *std::move(sampler),
                                               .compressor = *std::move(compressor),
                                               .queries = {.n_layers = config.n_layers,
                                                           .n_heads = config.n_heads,
                                                           .head_dim = config.head_dim},
                                               .kernels = model.kernels,
                                               .n_context = config.n_context});
  VC_RETURN_IF_ERROR(session->Reserve());
  return std::unique_ptr<LoneSession>(new LoneSession(model, pass, std::move(session)));
}

Result<std::span<const float>> LoneSession::NextLogits() {
  while (!session_->IsFinished()) {
    if (session_->NextStep() == Step::kCompress) {
      const compress::Job job = session_->CompressionJob();
      session_->ConsumeBody(session_->GetCompressor().Compress(job, *model_.team), 0);
      continue;
    }
    const model::RowGroup group = session_->Rows(kMaxRows);
    const model::GroupLogits logits = pass_.Run({&group, 1}).front();
    if (logits.n_rows == 1 && logits.are_all_rows_finite) {
      logits_.assign(logits.Row(0).begin(), logits.Row(0).end());
      return std::span<const float>(logits_);
    }
    session_->Consume(logits, 0);
  }
  if (session_->GetFinishReason() != decode::FinishReason::kError) return std::span<const float>();
  return tl::unexpected(session_->GetError());
}

void LoneSession::Choose() { Consume(logits_); }

void LoneSession::Force(TokenId token) {
  std::vector<float> one_hot(logits_.size(), 0.0f);
  one_hot[static_cast<size_t>(token.value)] = 1.0f;
  Consume(one_hot);
}

void LoneSession::Consume(std::span<const float> logits) {
  const uint8_t is_finite = 1;
  session_->Consume({.n_rows = 1,
                     .n_vocab = static_cast<int>(logits.size()),
                     .data = logits.data(),
                     .is_finite = {&is_finite, 1},
                     .are_all_rows_finite = true},
                    0);
  text_ += session_->TakeOutput().text;
}

std::span<const TokenId> LoneSession::Answer() const {
  return std::span(session_->Tokens()).subspan(session_->GetRequest().prompt.size());
}

}  // namespace vericache::apps
