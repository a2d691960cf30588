// How well compressed KVs draft: rounds of drafting over an answer that is known already.
//
// The answer is decoded once, over the full KV; every compressor then drafts it anew. A round's
// rows are the known tokens, as long as the draft is to be, in one pass over the draft KV: up to
// the first token that the draft chooses otherwise they are the rows that drafting one by one
// gives, to the bit (I3), and so the accepted count is that of a real round. Rows behind it say how
// often, and how nearly, the draft agrees token by token.
// Threads: one, with the team's help.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "decode/drafter.h"
#include "decode/sampler.h"
#include "kernels/kernels.h"
#include "kv/block_pool.h"
#include "kv/full_kv.h"
#include "model/forward.h"
#include "model/model.h"
#include "model/tokenizer.h"

namespace vericache::apps {

// Of one compressor and draft length.
struct Acceptance {
  std::string compressor;  // canonical spec
  int draft_len = 0;
  int n_rounds = 0;
  int64_t n_drafted = 0;   // rows, draft_len a round, but none behind the end of the text
  int64_t n_accepted = 0;  // drafted tokens before a round's first wrong one
  int64_t n_agreeing = 0;  // rows that choose the known token
  double kl_sum = 0;       // over rows, KL(full || draft) of the next token in nats
  size_t kv_bytes = 0;     // of body and tail, at the first draft
  double compress_s = 0;   // the first compression, of all of the prompt
};

struct AnswerParts {
  const model::Model* model = nullptr;
  const model::Tokenizer* tokenizer = nullptr;
  const kernels::KernelTable* kernels = nullptr;
  ThreadTeam* team = nullptr;
  int n_answer = 0;       // tokens that rounds cover
  int max_draft_len = 0;  // of the measurements to come
};

// A prompt and the model's greedy answer, which ends with the text if that ends first.
class KnownAnswer {
 public:
  // Prefills and decodes.
  // Errors: kInvalidArgument if the context does not hold prompt and answer, or the answer ends
  //         before there is anything to draft; kDataLoss if the model computes NaN or infinity.
  static Result<std::unique_ptr<KnownAnswer>> Create(const AnswerParts& parts,
                                                     std::vector<TokenId> prompt);

  // Drafts the answer round by round.
  // Requires: draft_len in [1, max_draft_len].
  // Errors:   kInvalidArgument for a spec that is none, or of what the KV cannot be packed in.
  Result<Acceptance> Measure(const std::string& spec, int draft_len);

  int PromptTokens() const { return n_prompt_; }
  int AnswerTokens() const;  // that rounds cover
  double PrefillSeconds() const { return prefill_s_; }
  size_t FullBytes() const;  // of the prompt

 private:
  KnownAnswer(const AnswerParts& parts, std::vector<TokenId> prompt, decode::Sampler sampler);
  Status Decode();
  Status RunFull(int n_rows, std::span<const float>* logits);
  decode::Drafter MakeDrafter(const std::string& spec) const;
  // The first n_tokens of the full KV, for a drafter to read.
  void ShareFull(int n_tokens);
  Status Compress(decode::Drafter& drafter, Acceptance& acceptance);
  // Returns how many drafted tokens were accepted.
  int DraftRound(int n_drafted, decode::Drafter& drafter, Acceptance& acceptance);

  AnswerParts parts_;
  int n_prompt_;
  std::vector<TokenId> tokens_;  // prompt and answer
  decode::Sampler sampler_;      // greedy
  kv::BlockPool pool_;
  kv::FullKv full_;   // of tokens_ but the last
  kv::FullKv begun_;  // what a round begins with, and a copy to gather queries in
  model::Pass pass_;
  double prefill_s_ = 0;
  // Of the answer's tokens, [token][n_vocab]: what the full KV says, and log of the sum of exp.
  std::vector<std::vector<float>> logits_;
  std::vector<std::vector<float>> probabilities_;
  std::vector<double> log_sums_;
};

}  // namespace vericache::apps
