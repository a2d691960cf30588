#include "decode/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "decode/accept.h"
#include "decode/kept_kv.h"
#include "decode/logits_hash.h"

namespace vericache::decode {
namespace {

// Longer drafts than this gain little even when all is accepted: a round's fixed cost is spread
// over enough tokens, while one rejection wastes more.
constexpr int kMaxAutoDraftLen = 64;
// Rows of a prefill pass that say what a verified row costs.
constexpr int kWideRows = 16;
// An answer that may be endless is expected to be this long, or as long again as it is already.
constexpr int kExpectedTokens = 256;

bool LooksUp(const Request& request) {
  return request.mode == Mode::kVerified &&
         (request.drafter == DrafterKind::kNgram || request.drafter == DrafterKind::kBoth);
}

bool ReplaysGiven(const Request& request) {
  return request.mode == Mode::kVerified && request.drafter == DrafterKind::kGiven;
}

DraftLength MakeDraftLength(const Request& request) {
  return request.draft_len ? DraftLength::Fixed(*request.draft_len)
                           : DraftLength::Auto(kMaxAutoDraftLen);
}

DraftLength MakeLookupLength(const Request& request) {
  if (request.draft_len) return DraftLength::Fixed(*request.draft_len);
  return ReplaysGiven(request) ? DraftLength::Fixed(kMaxDraftLen)
                               : DraftLength::AutoLookup(kMaxAutoDraftLen);
}

std::unique_ptr<Drafter> MakeDrafter(const Request& request, SessionParts& parts) {
  if (!UsesCompressor(request)) return nullptr;
  VC_CHECK(parts.compressor != nullptr, "no compressor");
  return std::make_unique<Drafter>(DrafterParts{.shape = parts.pool->Shape(),
                                                .queries = parts.queries,
                                                .compressor = std::move(parts.compressor),
                                                .tail = parts.tail,
                                                .seed = request.sampling.seed,
                                                .kernels = parts.kernels});
}

}  // namespace

Session::Session(Request request, SessionParts parts)
    : request_(std::move(request)),
      tokenizer_(parts.tokenizer),
      tokens_(request_.prompt),
      full_(*parts.pool),
      sampler_(std::move(parts.sampler.value())),
      text_(request_.stop),
      drafter_(MakeDrafter(request_, parts)),
      draft_length_(MakeDraftLength(request_)),
      lookup_length_(MakeLookupLength(request_)),
      suggest_length_(DraftLength::AutoLookup(kMaxAutoDraftLen)),
      weight_bytes_(parts.weight_bytes) {
  const int n_prompt = static_cast<int>(tokens_.size());
  VC_CHECK(n_prompt >= 1 && n_prompt < parts.n_context, "{} prompt tokens, context {}", n_prompt,
           parts.n_context);
  const bool is_bounded =
      request_.max_tokens >= 0 && request_.max_tokens <= parts.n_context - n_prompt;
  limit_ = is_bounded ? n_prompt + request_.max_tokens : parts.n_context;
  limit_reason_ = is_bounded ? FinishReason::kLength : FinishReason::kContext;
  for (const TokenId token : tokens_) sampler_.AcceptPrompt(token);
  if (LooksUp(request_)) {
    lookup_.emplace();
    for (const TokenId token : tokens_) lookup_->Append(token);
  }
  stats_.prompt_tokens = n_prompt;
  if (request_.prefix) SharePrefix();
}

// The last token runs again for its logits, and those whose queries the compressor will read.
void Session::SharePrefix() {
  const model::QueryTap* tap = drafter_ ? drafter_->Tap() : nullptr;
  const int n_rerun = tap != nullptr ? std::max(1, tap->WindowSize()) : 1;
  const int n_common = CommonPrefix(request_.prompt, request_.prefix->tokens);
  n_prefilled_ = std::clamp(stats_.prompt_tokens - n_rerun, 0, n_common);
  full_.Share(request_.prefix->kv, n_prefilled_);
  request_.prefix.reset();  // blocks that only it holds are free for this request
  stats_.reused_tokens = n_prefilled_;
}

int Session::FullKvTokens() const {
  return request_.mode == Mode::kLossy ? stats_.prompt_tokens : limit_;
}

Status Session::Reserve() { return full_.Reserve(FullKvTokens()); }

void Session::ForgetPrefix() {
  VC_CHECK(full_.Length() == stats_.reused_tokens, "{} tokens", full_.Length());
  full_.Truncate(0);
  n_prefilled_ = 0;
  stats_.reused_tokens = 0;
}

// ---- rows ---------------------------------------------------------------------------------------

int Session::RowCount() const {
  switch (step_) {
    case Step::kPrefill:
      return stats_.prompt_tokens - n_prefilled_;
    case Step::kPlain:
      return 1;
    case Step::kDraft:
      return request_.mode == Mode::kLossy ? 1 : drafter_->RowCount();
    case Step::kVerify:
      return static_cast<int>(Drafted().size()) + 1;
    case Step::kCompress:
    case Step::kFinished:
      return 0;
  }
  return 0;
}

model::RowGroup Session::Rows(int max_rows) {
  switch (step_) {
    case Step::kPrefill:
      return PrefillRows(max_rows);
    case Step::kPlain:
    case Step::kVerify:
      return VerifyRows();
    case Step::kDraft:
      return request_.mode == Mode::kLossy ? LossyRow() : drafter_->NextRows();
    case Step::kCompress:
    case Step::kFinished:
      break;
  }
  VC_CHECK(false, "step {} has no rows", static_cast<int>(step_));
}

model::RowGroup Session::PrefillRows(int max_rows) {
  const auto first = request_.prompt.begin() + n_prefilled_;
  row_tokens_.assign(first, first + std::min(max_rows, RowCount()));
  const bool is_last = static_cast<int>(row_tokens_.size()) == RowCount();
  return {.tokens = row_tokens_,
          .first_position = Position{n_prefilled_},
          .kv = &full_,
          .logits = is_last ? model::LogitRows::kLast : model::LogitRows::kNone,
          .tap = drafter_ ? drafter_->Tap() : nullptr};
}

// The pending token and the drafted ones; a drafted end of text needs no row of its own, since
// nothing may follow it.
model::RowGroup Session::VerifyRows() {
  row_tokens_.assign(1, tokens_.back());
  const auto drafted = Drafted();
  row_tokens_.insert(row_tokens_.end(), drafted.begin(), drafted.end());
  if (row_tokens_.size() > 1 && EndsText(row_tokens_.back())) row_tokens_.pop_back();
  return {.tokens = row_tokens_,
          .first_position = Position{full_.Length()},
          .kv = &full_,
          .logits = model::LogitRows::kAll,
          .tap = drafter_ ? drafter_->Tap() : nullptr};
}

model::RowGroup Session::LossyRow() {
  drafter_->Kv().Reserve(1);
  row_tokens_.assign(1, tokens_.back());
  return {.tokens = row_tokens_,
          .first_position = Position{drafter_->Kv().TokenCount()},
          .kv = &drafter_->Kv(),
          .logits = model::LogitRows::kLast,
          .tap = drafter_->Tap()};
}

// ---- what their logits mean ---------------------------------------------------------------------

void Session::Consume(const model::GroupLogits& logits, double seconds, double share) {
  pass_share_ = share;
  switch (step_) {
    case Step::kPrefill:
      return ConsumePrefill(logits, seconds);
    case Step::kPlain:
    case Step::kVerify:
      return ConsumeVerify(logits, seconds);
    case Step::kDraft:
      return request_.mode == Mode::kLossy ? ConsumeLossy(logits) : ConsumeDraft(logits, seconds);
    case Step::kCompress:
    case Step::kFinished:
      break;
  }
  VC_CHECK(false, "step {} takes no logits", static_cast<int>(step_));
}

void Session::ConsumePrefill(const model::GroupLogits& logits, double seconds) {
  const int n_rows = static_cast<int>(row_tokens_.size());
  if (n_rows >= kWideRows) prefill_row_s_ = seconds / n_rows;
  if (!logits.are_all_rows_finite) return FailNonFinite(n_prefilled_ + n_rows);
  full_.Commit(n_rows);
  n_prefilled_ += n_rows;
  stats_.kv_full_bytes = full_.TokenBytes();
  if (n_prefilled_ < stats_.prompt_tokens) return;
  if (TokensLeft() == 0) return Finish(limit_reason_);
  const auto last = logits.Row(logits.n_rows - 1);
  CommitSampled(last, Position{full_.Length()});
  ChooseStep();
}

void Session::ConsumeDraft(const model::GroupLogits& logits, double seconds) {
  const auto n_before = static_cast<int>(drafter_->Tokens().size());
  drafter_->Consume(logits);
  draft_s_ += seconds;
  const auto drafted = drafter_->Tokens();
  const auto n_suggested = static_cast<int>(proposal_.tokens.size());
  const int n_new = static_cast<int>(drafted.size()) - n_before;
  const int n_kept = std::clamp(n_new - 1, 0, n_suggested);
  stats_.looked_up += n_suggested;
  stats_.looked_up_kept += n_kept;
  suggest_length_.Observe({.n_matched = proposal_.n_matched,
                           .n_drafted = n_suggested,
                           .n_accepted = n_kept,
                           .verify_s = seconds});
  if (!drafted.empty() && EndsText(drafted.back())) drafter_->Stop();
  SuggestToDrafter();
  if (drafter_->IsDone()) step_ = drafted.empty() ? Step::kPlain : Step::kVerify;
}

std::vector<TokenId> Session::ChooseVerified(const model::GroupLogits& logits) {
  const auto drafted = Drafted();
  std::vector<TokenId> chosen;
  Sampler sampler = sampler_.Clone();
  for (int row = 0; row < logits.n_rows; ++row) {
    const auto i = static_cast<size_t>(row);
    if (!logits.is_finite[i]) break;
    const auto token = sampler.Sample(logits.Row(row), Position{full_.Length() + row + 1});
    if (!token) break;
    chosen.push_back(*token);
    if (i >= drafted.size() || *token != drafted[i]) break;
    sampler.Accept(*token);
  }
  return chosen;
}

void Session::ConsumeVerify(const model::GroupLogits& logits, double seconds) {
  const std::vector<TokenId> chosen = ChooseVerified(logits);
  const auto drafted = Drafted();
  const int n_accepted = CountAccepted(drafted, chosen);
  // The row behind the last chosen token decides whether all is well: it is the one that gave no
  // token, if any did: because it is wrong, or because none is allowed.
  const bool has_no_token = static_cast<int>(chosen.size()) < logits.n_rows &&
                            n_accepted == static_cast<int>(chosen.size());
  const bool is_row_wrong = has_no_token && !logits.is_finite[chosen.size()];

  const int n_committed = CommitTokens(chosen, logits);
  full_.Commit(n_committed);
  stats_.kv_full_bytes = std::max(stats_.kv_full_bytes, full_.TokenBytes());
  // A draft that outlived the answer counts up to its end: what came behind was not rejected.
  RoundTimes round{.n_matched = proposal_.n_matched,
                   .n_drafted = static_cast<int>(drafted.size()),
                   .n_accepted = std::min(n_accepted, n_committed),
                   .draft_s = std::exchange(draft_s_, 0.0),
                   .verify_s = seconds};
  if (IsFinished() && n_accepted >= n_committed) round.n_drafted = n_committed;
  ObserveRound(round);
  if (drafter_) drafter_->End();
  proposal_ = {};

  if (IsFinished()) return;
  if (is_row_wrong) return FailNonFinite(full_.Length() + 1);
  if (has_no_token) return Finish(FinishReason::kGrammar);
  ChooseStep();
}

void Session::ObserveRound(const RoundTimes& round) {
  const bool is_model_draft = drafter_ && !drafter_->Tokens().empty();
  if (round.n_drafted > 0) {
    stats_.rounds += 1;
    stats_.drafted += round.n_drafted;
    stats_.accepted += round.n_accepted;
  } else {
    plain_share_.Add(pass_share_);
    plain_kv_bytes_.Add(static_cast<double>(full_.TokenBytes()));
  }
  if (!is_model_draft) ObserveLookup(round);
  if (is_model_draft || round.n_drafted == 0) {
    RoundTimes observed = round;
    if (is_model_draft) {
      observed.extra_s =
          last_compress_s_ * (round.n_accepted + 1) / drafter_->CompressionInterval();
    }
    draft_length_.Observe(observed);
  }
}

void Session::ObserveLookup(const RoundTimes& round) {
  if (lookup_) {
    stats_.looked_up += round.n_drafted;
    stats_.looked_up_kept += round.n_accepted;
  }
  RoundTimes observed = round;
  observed.draft_s = 0;  // of a draft by the model that ended before its first token
  lookup_length_.Observe(observed);
}

void Session::ConsumeLossy(const model::GroupLogits& logits) {
  kv::DraftKv& kv = drafter_->Kv();
  if (!logits.are_all_rows_finite) return FailNonFinite(kv.TokenCount() + 1);
  kv.Commit(1);
  kv.AcceptDrafted();
  stats_.kv_draft_bytes = kv.Bytes();
  CommitSampled(logits.Row(0), Position{kv.TokenCount()});
  ChooseStep();
}

// ---- compression --------------------------------------------------------------------------------

compress::Job Session::CompressionJob() {
  VC_CHECK(step_ == Step::kCompress, "step {}", static_cast<int>(step_));
  return drafter_->BeginCompression(has_truth_ ? &full_ : nullptr);
}

void Session::ConsumeBody(Result<kv::PackedKv> body, double seconds) {
  VC_CHECK(step_ == Step::kCompress, "step {}", static_cast<int>(step_));
  stats_.compress_s += seconds;
  stats_.n_compressions += 1;
  last_compress_s_ = seconds;
  if (!body) return Fail(body.error());
  drafter_->EndCompression(*std::move(body));
  ChooseStep();
}

// ---- commits and steps --------------------------------------------------------------------------

bool Session::EndsText(TokenId token) const {
  return !request_.ignore_eos && tokenizer_->IsEndOfGeneration(token);
}

int Session::CommitTokens(const std::vector<TokenId>& tokens, const model::GroupLogits& logits) {
  int n_committed = 0;
  for (const TokenId token : tokens) {
    CommitToken(token, logits.Row(n_committed));
    ++n_committed;
    if (IsFinished()) break;
  }
  return n_committed;
}

void Session::CommitSampled(std::span<const float> logits, Position position) {
  const auto token = sampler_.Sample(logits, position);
  if (!token) return Finish(FinishReason::kGrammar);
  CommitToken(*token, logits);
}

void Session::CommitToken(TokenId token, std::span<const float> logits) {
  tokens_.push_back(token);
  sampler_.Accept(token);
  if (lookup_) lookup_->Append(token);
  stats_.generated_tokens += 1;
  output_.tokens.push_back(token);
  if (request_.hash_logits) stats_.logits_hash = HashLogits(logits, stats_.logits_hash);
  if (request_.n_logprobs >= 0) {
    output_.logprobs.push_back(ComputeLogprobs(logits, token, request_.n_logprobs));
  }
  output_.text += text_.Push(tokenizer_->Piece(token));
  if (text_.FoundStop()) return Finish(FinishReason::kStop);
  if (EndsText(token)) return Finish(FinishReason::kEos);
  if (TokensLeft() == 0) return Finish(limit_reason_);
}

void Session::ChooseStep() {
  if (IsFinished()) return;
  if (request_.mode == Mode::kLossy) return ChooseLossyStep();
  const int n_draft = NextDraftLength();
  if (n_draft == 0) {
    if (lookup_ || ReplaysGiven(request_)) {
      proposal_ = LookUp(lookup_length_, {}, TokensLeft() - 1);
    }
    step_ = proposal_.tokens.empty() ? Step::kPlain : Step::kVerify;
  } else if (drafter_->NeedsCompression(full_.Length())) {
    step_ = Step::kCompress;
  } else {
    drafter_->Begin(
        {.full = &full_, .committed = &sampler_, .pending = tokens_.back(), .n_tokens = n_draft});
    stats_.kv_draft_bytes = drafter_->Kv().Bytes();
    step_ = Step::kDraft;
    SuggestToDrafter();
  }
}

// The truth serves the first token and the first body; then it is given up. A method that reads the
// full KV is not run again: its tail stays exact and grows.
void Session::ChooseLossyStep() {
  const kv::DraftKv& kv = drafter_->Kv();
  if (has_truth_ && !drafter_->NeedsCompression(full_.Length())) {
    drafter_->Kv().CatchUp(full_);
    if (!request_.keep_kv) full_.Truncate(0);
    has_truth_ = false;
  }
  const bool may_compress =
      has_truth_ || drafter_->GetCompressor().GetTraits().refresh == compress::Refresh::kFromDraft;
  const int n_tokens = has_truth_ ? full_.Length() : kv.VerifiedCount();
  step_ = may_compress && drafter_->NeedsCompression(n_tokens) ? Step::kCompress : Step::kDraft;
}

// A draft and the token that its verify adds never pass the limit, so the last round is short. With
// nothing compressed a draft row costs what a plain step costs: auto does not try.
int Session::NextDraftLength() {
  if (!drafter_) return 0;
  const int n = std::clamp(draft_length_.Next(), 0, TokensLeft() - 1);
  if (n == 0 || draft_length_.IsFixed()) return n;
  if (drafter_->BodyEndFor(full_.Length()) == 0) return 0;
  return stats_.n_compressions > 0 || IsWorthCompressing() ? n : 0;
}

// Time and bytes are medians over the same passes: the newest one may be no plain step, and shared
// by others.
PlainStep Session::MeasuredStep() const {
  return {.seconds = draft_length_.PlainSeconds(),
          .weight_bytes = plain_share_.Value() * static_cast<double>(weight_bytes_),
          .kv_bytes = plain_kv_bytes_.Value()};
}

bool Session::IsWorthCompressing() {
  const StartEstimate estimate =
      EstimateStart(MeasuredStep(), prefill_row_s_, drafter_->GetCompressor().GetTraits().n_window);
  draft_length_.Expect(estimate.rows);
  const int n_expected = std::max(kExpectedTokens, stats_.generated_tokens);
  return draft_length_.PaysToStart(estimate.start_s, std::min(n_expected, TokensLeft()));
}

// What the given answer has behind the newest token, if that is its own.
NgramProposal Session::NextGiven(int n_most) const {
  const std::vector<TokenId>& given = request_.given;
  const size_t n_done = tokens_.size() - request_.prompt.size();
  if (n_done >= given.size() || tokens_.back() != given[n_done - 1]) return {};
  const size_t n_next = std::min(given.size() - n_done, static_cast<size_t>(n_most));
  const auto first = given.begin() + static_cast<ptrdiff_t>(n_done);
  return {.tokens = {first, first + static_cast<ptrdiff_t>(n_next)}, .n_matched = 1};
}

// Nothing may follow an end of text, so a proposal ends there.
NgramProposal Session::LookUp(const DraftLength& length, std::span<const TokenId> drafted,
                              int n_most) const {
  n_most = std::clamp(n_most, 0, kMaxDraftLen);
  NgramProposal proposal = lookup_ ? lookup_->Propose(drafted, n_most) : NextGiven(n_most);
  auto& tokens = proposal.tokens;
  const auto n_wanted = static_cast<size_t>(std::max(0, length.Next(proposal.n_matched)));
  if (tokens.size() > n_wanted) tokens.resize(n_wanted);
  const auto end =
      std::find_if(tokens.begin(), tokens.end(), [this](TokenId token) { return EndsText(token); });
  if (end != tokens.end()) tokens.erase(end + 1, tokens.end());
  return proposal;
}

// The model itself has to draft the end of a text: behind a suggested one there would be a row.
void Session::SuggestToDrafter() {
  proposal_ = {};  // what the pass before was given is history, done or not
  if (!lookup_ || drafter_->IsDone()) return;
  proposal_ = LookUp(suggest_length_, drafter_->Tokens(), drafter_->WantedCount() - 1);
  auto& tokens = proposal_.tokens;
  if (!tokens.empty() && EndsText(tokens.back())) tokens.pop_back();
  drafter_->Suggest(tokens);
}

std::span<const TokenId> Session::Drafted() const {
  if (step_ != Step::kVerify) return {};
  const bool is_model_draft = drafter_ && !drafter_->Tokens().empty();
  return is_model_draft ? drafter_->Tokens() : std::span<const TokenId>(proposal_.tokens);
}

void Session::Cancel() {
  if (!IsFinished()) Finish(FinishReason::kCancelled);
}

void Session::Finish(FinishReason reason) {
  step_ = Step::kFinished;
  reason_ = reason;
  if (!text_.FoundStop()) output_.text += text_.Finish();
}

void Session::Fail(Error error) {
  error_ = std::move(error);
  Finish(FinishReason::kError);
}

void Session::FailNonFinite(int n_tokens) {
  Fail({ErrorCode::kDataLoss,
        fmt::format("the model computed NaN or infinity within the first {} tokens: its weights "
                    "are damaged, or its values too large",
                    n_tokens)});
}

Output Session::TakeOutput() { return std::exchange(output_, {}); }

}  // namespace vericache::decode
