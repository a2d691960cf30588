#include "apps/drift_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "apps/measures.h"
#include "compress/registry.h"
#include "decode/kept_kv.h"

namespace vericache::apps {
namespace {

using decode::Mode;
using Sessions = std::vector<std::unique_ptr<LoneSession>>;

// Where all sessions of one measurement run.
struct Stage {
  const BareModel& bare;
  std::shared_ptr<kv::BlockPool> pool;
  model::Pass pass;

  Result<std::unique_ptr<LoneSession>> Begin(decode::Request request) {
    return LoneSession::Make(bare, pass, *pool, std::move(request));
  }
};

// The prompt's KV, which every session begins with.
Result<std::shared_ptr<const decode::KeptKv>> PrefillOnce(Stage& stage, decode::Request request) {
  request.max_tokens = 0;
  const auto session = stage.Begin(std::move(request));
  VC_RETURN_IF_ERROR(session);
  VC_RETURN_IF_ERROR((*session)->NextLogits());
  (*session)->Choose();
  const decode::Session& done = (*session)->Get();
  return std::make_shared<const decode::KeptKv>(stage.pool, done.Tokens(), done.Full());
}

decode::Request LossyRequest(decode::Request request, const std::string& compressor) {
  request.mode = Mode::kLossy;
  request.compressor = compressor;
  return request;
}

// Goes wherever it is led.
decode::Request ForcedRequest(decode::Request request, const std::string& compressor) {
  request = LossyRequest(std::move(request), compressor);
  decode::SamplingParams sampling;
  sampling.seed = request.sampling.seed;  // compressors may draw from it
  request.sampling = sampling;
  request.stop.clear();
  request.ignore_eos = true;
  return request;
}

// The full answer, and the steps of all methods along it.
Status FollowFullAnswer(Stage& stage, const decode::Request& request, Drift& drift,
                        const std::function<void(int)>& on_step) {
  const auto full = stage.Begin(request);
  VC_RETURN_IF_ERROR(full);
  Sessions forced;
  for (const MethodDrift& method : drift.methods) {
    auto session = stage.Begin(ForcedRequest(request, method.compressor));
    VC_RETURN_IF_ERROR(session);
    forced.push_back(*std::move(session));
  }
  while (true) {
    const auto full_logits = (*full)->NextLogits();
    VC_RETURN_IF_ERROR(full_logits);
    if (full_logits->empty()) break;
    for (size_t i = 0; i < forced.size(); ++i) {
      const auto lossy_logits = forced[i]->NextLogits();
      VC_RETURN_IF_ERROR(lossy_logits);
      MethodDrift& method = drift.methods[i];
      method.kl.push_back(KlDivergence(*full_logits, *lossy_logits));
      method.is_top_same.push_back(decode::ArgMax(*full_logits) == decode::ArgMax(*lossy_logits));
    }
    (*full)->Choose();
    const auto answer = (*full)->Answer();
    if (answer.size() == drift.tokens.size()) break;  // no token was allowed
    drift.tokens.push_back(answer.back());
    for (const auto& session : forced) session->Force(answer.back());
    if (on_step) on_step(static_cast<int>(answer.size()));
  }
  drift.text = (*full)->Text();
  drift.reason = (*full)->Get().GetFinishReason();
  drift.kv_bytes = (*full)->Get().GetStats().kv_full_bytes;
  return {};
}

Status AnswerLossily(Stage& stage, const decode::Request& request, const Drift& drift,
                     MethodDrift& method) {
  const auto session = stage.Begin(LossyRequest(request, method.compressor));
  VC_RETURN_IF_ERROR(session);
  while (true) {
    const auto logits = (*session)->NextLogits();
    VC_RETURN_IF_ERROR(logits);
    if (logits->empty()) break;
    (*session)->Choose();
  }
  method.tokens.assign((*session)->Answer().begin(), (*session)->Answer().end());
  method.text = (*session)->Text();
  method.kv_bytes = (*session)->Get().GetStats().kv_draft_bytes;
  method.first_difference = FirstDifference(method.tokens, drift.tokens);
  method.edit_distance = EditDistance(method.text, drift.text);
  return {};
}

}  // namespace

std::span<const double> MethodDrift::ComparedKl() const {
  return std::span(kl).subspan(kl.empty() ? 0 : 1);
}

double MethodDrift::TopAgreement() const {
  if (is_top_same.size() < 2) return 1;
  return static_cast<double>(std::count(is_top_same.begin() + 1, is_top_same.end(), true)) /
         static_cast<double>(is_top_same.size() - 1);
}

Result<Drift> MeasureDrift(const BareModel& bare, const decode::Request& request,
                           const std::vector<std::string>& compressors,
                           const std::function<void(int)>& on_step) {
  const model::ModelConfig& config = bare.model->Config();
  const auto n_prompt = static_cast<int>(request.prompt.size());
  const bool is_open = request.max_tokens < 0 || request.max_tokens > config.n_context - n_prompt;
  const int n_tokens = is_open ? config.n_context : n_prompt + request.max_tokens;
  // The kept prompt, the full answer, and of each method at most the prompt again, at one time.
  const size_t pool_bytes =
      PoolBytesFor(config.Kv(), n_tokens, 2) +
      PoolBytesFor(config.Kv(), n_prompt, static_cast<int>(compressors.size()));
  Stage stage{.bare = bare,
              .pool = std::make_shared<kv::BlockPool>(config.Kv(), pool_bytes),
              .pass = model::Pass(*bare.model, *bare.kernels, *bare.team, LoneSession::kMaxRows)};
  Drift drift;
  for (const std::string& spec : compressors) {
    const auto compressor = compress::MakeCompressor(spec);
    VC_RETURN_IF_ERROR(compressor);
    drift.methods.push_back({});
    drift.methods.back().compressor = (*compressor)->Spec();
  }
  const auto prefix = PrefillOnce(stage, request);
  VC_RETURN_IF_ERROR(prefix);
  decode::Request begun = request;
  begun.prefix = *prefix;
  VC_RETURN_IF_ERROR(FollowFullAnswer(stage, begun, drift, on_step));
  for (MethodDrift& method : drift.methods) {
    VC_RETURN_IF_ERROR(AnswerLossily(stage, begun, drift, method));
  }
  return drift;
}

}  // namespace vericache::apps
