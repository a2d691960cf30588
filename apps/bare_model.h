// A model without an engine, and one session on it step by step: for commands that look at logits,
// which an engine keeps to itself.
//
// Threads: one user at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/run_options.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "decode/session.h"
#include "kernels/kernels.h"
#include "kv/block_pool.h"
#include "model/forward.h"
#include "model/model.h"
#include "model/tokenizer.h"

namespace vericache::apps {

struct BareModel {
  std::string path;
  const kernels::KernelTable* kernels = nullptr;
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<model::Tokenizer> tokenizer;

  // Errors: those of finding and loading a model; kUnsupported for an instruction set.
  static Result<BareModel> Load(const MachineOptions& options);
};

// Pool memory for n_tokens, in blocks of their own for each of n_sequences.
size_t PoolBytesFor(const kv::KvShape& shape, int n_tokens, int n_sequences);

// A session of mode full or lossy, which choose one token a pass.
class LoneSession {
 public:
  static constexpr int kMaxRows = 256;  // of one of its passes

  // All must outlive it. Requires: a valid request, a mode that is not kVerified.
  // Errors: those of compressor and grammar; kResourceExhausted.
  static Result<std::unique_ptr<LoneSession>> Make(const BareModel& model, model::Pass& pass,
                                                   kv::BlockPool& pool, decode::Request request);

  // Runs up to the choice of the next token. Empty: the answer has ended.
  // Errors: the one that ended the request.
  Result<std::span<const float>> NextLogits();
  // The token that these logits give.
  void Choose();
  // This token, whatever the logits say. Requires: greedy sampling without filters.
  void Force(TokenId token);

  const decode::Session& Get() const { return *session_; }
  std::span<const TokenId> Answer() const;
  const std::string& Text() const { return text_; }

 private:
  LoneSession(const BareModel& model, model::Pass& pass, std::unique_ptr<decode::Session> session)
      : model_(model), pass_(pass), session_(std::move(session)) {}
  void Consume(std::span<const float> logits);

  const BareModel& model_;
  model::Pass& pass_;
  std::unique_ptr<decode::Session> session_;
  std::vector<float> logits_;  // a copy: passes of other sessions may come before the choice
  std::string text_;
};

}  // namespace vericache::apps
