// One request's life as a state machine: which rows it wants in the next pass, and what their
// logits mean.
//
//   prefill ──► first token, from the full KV's logits
//     │ full:      plain rows over the full KV
//     │ verified:  compress? ─► draft rows over the draft KV ─► one verify over the full KV ─► ...
//     │            with drafter kNgram: look up ─► one verify over the full KV ─► ...
//     │            with kBoth each draft pass runs, and accepts or not, what was looked up; while
//     │            auto drafts nothing, looked-up tokens are verified as with kNgram
//     │            with kGiven the draft is a known answer: a replay is a few wide verifies
//     └ lossy:     compress? ─► rows over the draft KV, unverified
//
// A verify runs the pending token and the drafted ones through the full KV. Row i chooses the token
// behind it; as long as that is the drafted one, the next row is valid too. The rows of committed
// tokens become part of the full KV, all others are forgotten, before anything else reads the
// sequence. A plain step is a verify of no drafts: there is one way to commit a token.
//
// Invariants: I1, I2; tokens and committed logits equal those of mode full (kVerified).
// Threads:    one user at a time; no threads, clocks or files inside: seconds come in as arguments.
// Source:     VeriCache (arXiv 2605.17613), draft-and-verify loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "decode/draft_length.h"
#include "decode/drafter.h"
#include "decode/ngram_lookup.h"
#include "decode/request.h"
#include "decode/sampler.h"
#include "decode/start_estimate.h"
#include "decode/text_stream.h"
#include "kv/full_kv.h"
#include "model/forward.h"
#include "model/tokenizer.h"

namespace vericache::decode {

// What a session is made of besides its request. Pointers must outlive it.
struct SessionParts {
  const model::Tokenizer* tokenizer = nullptr;
  kv::BlockPool* pool = nullptr;
  std::optional<Sampler> sampler{};  // of the request, which has accepted nothing yet
  std::unique_ptr<compress::Compressor> compressor{};  // null unless UsesCompressor
  model::QueryShape queries{};
  const kernels::KernelTable* kernels = &kernels::RefKernels();  // for compressing
  int n_context = 0;        // tokens of prompt and answer together
  size_t weight_bytes = 0;  // that a pass reads
  TailPolicy tail{};
};

// Tokens committed since the last TakeOutput, and the text they release.
struct Output {
  std::vector<TokenId> tokens;
  std::string text;
  std::vector<TokenLogprobs> logprobs;
};

class Session {
 public:
  enum class Step : uint8_t { kPrefill, kPlain, kDraft, kVerify, kCompress, kFinished };

  // Requires: a valid request (ValidateRequest) for this context.
  Session(Request request, SessionParts parts);

  // Tokens that the full KV may have to hold.
  int FullKvTokens() const;
  // Takes the blocks for all of them.
  // Errors: kResourceExhausted, with the numbers.
  Status Reserve();
  // Gives back what it shares with an earlier answer: all of the prompt will be prefilled.
  // Requires: nothing is reserved.
  void ForgetPrefix();

  Step NextStep() const { return step_; }
  // Rows that the next pass takes, at most: a prefill may be given fewer, other steps all.
  int RowCount() const;
  // Requires: a step that wants rows. Valid until Consume.
  model::RowGroup Rows(int max_rows);
  // Takes the logits of those rows. `share`: of all rows of the pass; `seconds`: their share of its
  // time.
  void Consume(const model::GroupLogits& logits, double seconds, double share = 1);

  // The work of step kCompress, for whoever has the threads.
  const compress::Compressor& GetCompressor() const { return drafter_->GetCompressor(); }
  compress::Job CompressionJob();
  void ConsumeBody(Result<kv::PackedKv> body, double seconds);

  // Ends the request at once, with kCancelled or with kError.
  void Cancel();
  void Fail(Error error);

  Output TakeOutput();
  bool IsFinished() const { return step_ == Step::kFinished; }
  FinishReason GetFinishReason() const { return reason_; }
  const Error& GetError() const { return error_; }  // of kError
  // Prompt tokens whose K and V are stored.
  int PrefilledCount() const { return n_prefilled_; }
  // Committed tokens, prompt included.
  const std::vector<TokenId>& Tokens() const { return tokens_; }
  // Times of prefill and decoding are the caller's to fill in.
  const Stats& GetStats() const { return stats_; }
  const Request& GetRequest() const { return request_; }
  const kv::FullKv& Full() const { return full_; }

 private:
  model::RowGroup PrefillRows(int max_rows);
  model::RowGroup VerifyRows();
  model::RowGroup LossyRow();
  void ConsumePrefill(const model::GroupLogits& logits, double seconds);
  void ConsumeDraft(const model::GroupLogits& logits, double seconds);
  void ConsumeVerify(const model::GroupLogits& logits, double seconds);
  void ConsumeLossy(const model::GroupLogits& logits);
  // Tokens that the rows choose, up to the first that differs from its draft or went wrong.
  std::vector<TokenId> ChooseVerified(const model::GroupLogits& logits);
  void ObserveRound(const RoundTimes& round);
  void ObserveLookup(const RoundTimes& round);

  // Commits tokens in order until the request ends; logits row i chose token i. Returns how many.
  int CommitTokens(const std::vector<TokenId>& tokens, const model::GroupLogits& logits);
  // Samples without a draft, and commits.
  void CommitSampled(std::span<const float> logits, Position position);
  void CommitToken(TokenId token, std::span<const float> logits);
  bool EndsText(TokenId token) const;
  int TokensLeft() const { return limit_ - static_cast<int>(tokens_.size()); }

  // Begins with what the request's prefix has of the prompt.
  void SharePrefix();
  // Where to go after a commit.
  void ChooseStep();
  void ChooseLossyStep();
  int NextDraftLength();
  // Requires: a plain step was taken.
  PlainStep MeasuredStep() const;
  // Before the first compression: whether it is expected to be worth its time.
  bool IsWorthCompressing();
  // The tokens to verify: drafted by the model, or looked up. Empty in a plain step.
  std::span<const TokenId> Drafted() const;
  // What `length` wants of what can be looked up behind the committed tokens and `drafted`, or of
  // the given answer.
  NgramProposal LookUp(const DraftLength& length, std::span<const TokenId> drafted,
                       int n_most) const;
  NgramProposal NextGiven(int n_most) const;
  void SuggestToDrafter();
  void Finish(FinishReason reason);
  void FailNonFinite(int n_tokens);

  Request request_;
  const model::Tokenizer* tokenizer_;
  int limit_ = 0;  // of tokens_
  FinishReason limit_reason_ = FinishReason::kNone;

  std::vector<TokenId> tokens_;  // prompt and committed ones; the newest is not in the KV yet
  kv::FullKv full_;
  Sampler sampler_;  // has accepted exactly tokens_
  TextStream text_;
  std::unique_ptr<Drafter> drafter_;   // null unless UsesCompressor
  std::optional<NgramLookup> lookup_;  // of tokens_; null unless LooksUp
  NgramProposal proposal_;             // of the pass under way
  DraftLength draft_length_;           // of drafts by the model
  DraftLength lookup_length_;          // of proposals that are verified at once
  DraftLength suggest_length_;         // of the proposals that draft passes run

  Step step_ = Step::kPrefill;
  int n_prefilled_ = 0;
  std::vector<TokenId> row_tokens_;  // of the pass under way
  double draft_s_ = 0;               // of the round under way
  double last_compress_s_ = 0;
  size_t weight_bytes_;
  double pass_share_ = 1;        // of the newest pass
  RecentMedian plain_share_;     // of plain steps
  RecentMedian plain_kv_bytes_;  // that they read
  double prefill_row_s_ = 0;     // of the newest wide pass; 0: there was none
  bool has_truth_ = true;        // false: lossy, and the full KV is gone

  Output output_;
  Stats stats_;
  FinishReason reason_ = FinishReason::kNone;
  Error error_{};
};

}  // namespace vericache::decode
