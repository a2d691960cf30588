#include "apps/acceptance.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "compress/registry.h"

namespace vericache::apps {
namespace {

constexpr int kPrefillRows = 256;
constexpr int kMaxWindow = 1024;  // the newest tokens whose queries a method may ask for

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

size_t PoolBytes(const kv::KvShape& shape, int n_tokens) {
  const auto n_blocks = static_cast<size_t>(n_tokens / kv::kBlockTokens + 2);
  return n_blocks * static_cast<size_t>(shape.n_layers) * kv::BlockLayout(shape).Bytes();
}

// Natural logarithm of the sum of exp(logits).
double LogSumExp(std::span<const float> logits) {
  const float max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

}  // namespace

KnownAnswer::KnownAnswer(const AnswerParts& parts, std::vector<TokenId> prompt,
                         decode::Sampler sampler)
    : parts_(parts),
      n_prompt_(static_cast<int>(prompt.size())),
      tokens_(std::move(prompt)),
      sampler_(std::move(sampler)),
      pool_(parts.model->Config().Kv(),
            PoolBytes(parts.model->Config().Kv(),
                      n_prompt_ + parts.n_answer + parts.max_draft_len + kMaxWindow)),
      full_(pool_),
      begun_(pool_),
      pass_(*parts.model, *parts.kernels, *parts.team,
            std::max(kPrefillRows, parts.max_draft_len + 1)) {}

Result<std::unique_ptr<KnownAnswer>> KnownAnswer::Create(const AnswerParts& parts,
                                                         std::vector<TokenId> prompt) {
  const int n_tokens = static_cast<int>(prompt.size()) + parts.n_answer + parts.max_draft_len;
  const int n_context = parts.model->Config().n_context;
  if (n_tokens > n_context) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "prompt ({}), answer ({}) and the last draft ({}) need {} tokens, but the "
                     "context holds {}",
                     prompt.size(), parts.n_answer, parts.max_draft_len, n_tokens, n_context);
  }
  auto sampler = decode::Sampler::Make({}, *parts.tokenizer, n_context);
  if (!sampler) return tl::unexpected(sampler.error());
  std::unique_ptr<KnownAnswer> answer(
      new KnownAnswer(parts, std::move(prompt), *std::move(sampler)));
  VC_RETURN_IF_ERROR(answer->full_.Reserve(n_tokens));
  VC_RETURN_IF_ERROR(answer->Decode());
  if (answer->logits_.size() > 1) return answer;
  return MakeError(ErrorCode::kInvalidArgument,
                   "the answer ends with its first token: there is nothing to draft");
}

int KnownAnswer::AnswerTokens() const {
  return std::min(parts_.n_answer, static_cast<int>(logits_.size()));
}

size_t KnownAnswer::FullBytes() const {
  return full_.TokenBytes() / static_cast<size_t>(full_.Length()) * static_cast<size_t>(n_prompt_);
}

// The next n_rows of tokens_ through the full KV.
Status KnownAnswer::RunFull(int n_rows, std::span<const float>* logits) {
  const model::RowGroup group{.tokens = std::span(tokens_).subspan(
                                  static_cast<size_t>(full_.Length()), static_cast<size_t>(n_rows)),
                              .first_position = Position{full_.Length()},
                              .kv = &full_,
                              .logits = model::LogitRows::kLast};
  const model::GroupLogits& result = pass_.Run({&group, 1}).front();
  if (!result.are_all_rows_finite) {
    return MakeError(ErrorCode::kDataLoss, "the model computes NaN or infinity near token {}",
                     full_.Length());
  }
  full_.Commit(n_rows);
  *logits = result.Row(0);
  return {};
}

Status KnownAnswer::Decode() {
  std::span<const float> logits;
  const auto begin = std::chrono::steady_clock::now();
  while (full_.Length() < n_prompt_) {
    VC_RETURN_IF_ERROR(RunFull(std::min(kPrefillRows, n_prompt_ - full_.Length()), &logits));
  }
  prefill_s_ = SecondsSince(begin);
  while (true) {
    log_sums_.push_back(LogSumExp(logits));
    logits_.emplace_back(logits.begin(), logits.end());
    std::vector<float>& shares = probabilities_.emplace_back(logits.size());
    for (size_t i = 0; i < shares.size(); ++i) {
      shares[i] = std::exp(static_cast<float>(logits[i] - log_sums_.back()));
    }
    tokens_.push_back(decode::ArgMax(logits));
    if (static_cast<int>(logits_.size()) == parts_.n_answer + parts_.max_draft_len ||
        parts_.tokenizer->IsEndOfGeneration(tokens_.back())) {
      return {};
    }
    VC_RETURN_IF_ERROR(RunFull(1, &logits));
  }
}

decode::Drafter KnownAnswer::MakeDrafter(const std::string& spec) const {
  const model::ModelConfig& config = parts_.model->Config();
  return decode::Drafter({.shape = config.Kv(),
                          .queries = {.n_layers = config.n_layers,
                                      .n_heads = config.n_heads,
                                      .head_dim = config.head_dim},
                          .compressor = *compress::MakeCompressor(spec),
                          .tail = {},
                          .kernels = parts_.kernels});
}

void KnownAnswer::ShareFull(int n_tokens) {
  begun_.Truncate(0);
  begun_.Share(full_, n_tokens);
}

// The queries are those of the newest rows, run once more over a copy of the KV before them.
Status KnownAnswer::Compress(decode::Drafter& drafter, Acceptance& acceptance) {
  const int n_tokens = begun_.Length();
  if (model::QueryTap* tap = drafter.Tap()) {
    ShareFull(std::max(0, n_tokens - tap->WindowSize()));
    VC_RETURN_IF_ERROR(begun_.Reserve(n_tokens));
    while (begun_.Length() < n_tokens) {
      const auto n_rows = std::min(kPrefillRows, n_tokens - begun_.Length());
      const model::RowGroup group{
          .tokens = std::span(tokens_).subspan(static_cast<size_t>(begun_.Length()),
                                               static_cast<size_t>(n_rows)),
          .first_position = Position{begun_.Length()},
          .kv = &begun_,
          .logits = model::LogitRows::kNone,
          .tap = tap};
      pass_.Run({&group, 1});
      begun_.Commit(n_rows);
    }
  }
  const compress::Job job = drafter.BeginCompression(&begun_);
  const auto begin = std::chrono::steady_clock::now();
  auto body = drafter.GetCompressor().Compress(job, *parts_.team);
  VC_RETURN_IF_ERROR(body);
  if (acceptance.n_rounds == 0) acceptance.compress_s = SecondsSince(begin);
  drafter.EndCompression(*std::move(body));
  return {};
}

int KnownAnswer::DraftRound(int n_drafted, decode::Drafter& drafter, Acceptance& acceptance) {
  const auto first = tokens_.begin() + begun_.Length() + 1;  // the first token to draft
  drafter.Begin({.full = &begun_,
                 .committed = &sampler_,
                 .pending = tokens_[static_cast<size_t>(begun_.Length())],
                 .n_tokens = n_drafted});
  if (acceptance.n_rounds == 0) acceptance.kv_bytes = drafter.Kv().Bytes();
  drafter.Suggest({first, first + n_drafted - 1});
  const model::RowGroup group = drafter.NextRows();
  const model::GroupLogits& drafted = pass_.Run({&group, 1}).front();
  for (int row = 0; row < n_drafted; ++row) {
    const std::span<const float> logits = drafted.Row(row);
    if (decode::ArgMax(logits) == first[row]) ++acceptance.n_agreeing;
    const auto token = static_cast<size_t>(begun_.Length() + 1 + row - n_prompt_);
    double difference = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      difference += probabilities_[token][i] * (logits_[token][i] - logits[i]);
    }
    // Rounding may leave it just below 0.
    acceptance.kl_sum += std::max(0.0, difference - log_sums_[token] + LogSumExp(logits));
  }
  drafter.Consume(drafted);
  drafter.Stop();
  const auto chosen = drafter.Tokens();
  const auto wrong = std::mismatch(chosen.begin(), chosen.end(), first).first;
  const auto n_accepted = static_cast<int>(wrong - chosen.begin());
  drafter.End();
  acceptance.n_rounds += 1;
  acceptance.n_drafted += n_drafted;
  acceptance.n_accepted += n_accepted;
  return n_accepted;
}

Result<Acceptance> KnownAnswer::Measure(const std::string& spec, int draft_len) {
  VC_CHECK(draft_len >= 1 && draft_len <= parts_.max_draft_len, "draft length {}", draft_len);
  VC_RETURN_IF_ERROR(compress::MakeCompressor(spec));
  decode::Drafter drafter = MakeDrafter(spec);
  Acceptance acceptance{.compressor = drafter.GetCompressor().Spec(), .draft_len = draft_len};
  int n_tokens = n_prompt_;
  while (n_tokens < n_prompt_ + parts_.n_answer) {
    const int n_known = static_cast<int>(tokens_.size()) - n_tokens - 1;
    if (n_known <= 0) break;  // the newest token ends the text
    ShareFull(n_tokens);
    if (drafter.NeedsCompression(begun_.Length())) {
      VC_RETURN_IF_ERROR(Compress(drafter, acceptance));
    }
    n_tokens += DraftRound(std::min(draft_len, n_known), drafter, acceptance) + 1;
  }
  begun_.Truncate(0);
  return acceptance;
}

}  // namespace vericache::apps
