// Times passes of the model: n rows at a depth of KV, as prefill, decoding and verifying run them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "kv/block_pool.h"
#include "kv/full_kv.h"
#include "model/forward.h"
#include "model/model.h"

namespace vericache::apps {

// What a pass of n rows at a depth costs and moves.
struct RowTiming {
  int depth = 0;
  int n_rows = 0;
  double min_s = 0;
  double median_s = 0;
  size_t read_bytes = 0;  // weights once, and the KV of all tokens before
  double n_macs = 0;      // multiply-adds of weights and attention
};

// One sequence that grows by prefill and never shrinks.
class TimedSequence {
 public:
  // Errors: kInvalidArgument if the model's context holds no n_tokens.
  static Result<std::unique_ptr<TimedSequence>> Create(const model::Model& model,
                                                       const kernels::KernelTable& kernels,
                                                       ThreadTeam& team, int n_tokens,
                                                       int max_rows);

  // Prefills up to `depth` tokens, in chunks of max_rows.
  Status GrowTo(int depth);
  // Times n_reps passes of n_rows behind the present end; none is committed.
  RowTiming Time(int n_rows, model::LogitRows logits, int n_reps);

 private:
  TimedSequence(const model::Model& model, const kernels::KernelTable& kernels, ThreadTeam& team,
                int n_tokens, int max_rows);
  bool Run(int n_rows, model::LogitRows logits);

  const model::Model& model_;
  int max_rows_;
  std::vector<TokenId> tokens_;
  kv::BlockPool pool_;
  kv::FullKv kv_;
  model::Pass pass_;
};

}  // namespace vericache::apps
