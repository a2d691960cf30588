// Times passes of the model: n rows at a depth of KV, of one sequence or several, as prefill,
// decoding and verifying run them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "kv/block_pool.h"
#include "kv/full_kv.h"
#include "model/forward.h"
#include "model/model.h"

namespace vericache::apps {

// What a pass has to read and to multiply: with the machine's limits, the least time it can take.
struct PassCost {
  size_t weight_bytes = 0;
  size_t kv_bytes = 0;
  double matrix_macs = 0;
  double attention_macs = 0;
};

struct PassTiming {
  double seconds = 0;
  model::PassTimes parts{};  // TimeParts alone fills it
};

// Sequences of one depth. What is timed is forgotten again, so the depth stays.
class TimedSequences {
 public:
  struct Room {
    int n_sequences = 1;
    int n_tokens = 0;  // of each sequence: depth and the rows behind it
    int max_rows = 0;  // of one pass, all sequences together; more run as several passes
  };
  // Errors: kInvalidArgument if the model's context holds no n_tokens.
  static Result<std::unique_ptr<TimedSequences>> Create(const model::Model& model,
                                                        const kernels::KernelTable& kernels,
                                                        ThreadTeam& team, const Room& room);

  // The first sequence begins as the first of `former` does, as far as there is room: no prefill.
  // Requires: the same model; this one is empty.
  Status TakeTokens(const TimedSequences& former);
  // The first sequence is prefilled or forgets; the others are copies of it in memory of their own.
  // Errors: kInvalidArgument without room for `depth`; kDataLoss if the model computes no numbers.
  Status SetDepth(int depth);
  int Depth() const { return kvs_.front()->Length(); }
  // Rows that there is room for behind each sequence.
  int RowRoom() const { return room_.n_tokens - Depth(); }

  // Runs n_rows behind each sequence. Requires: 1 <= n_rows <= RowRoom().
  PassTiming Time(int n_rows, model::LogitRows logits);
  // The same, with the time of each part of the layer (PassPart).
  PassTiming TimeParts(int n_rows, model::LogitRows logits);
  PassCost Cost(int n_rows, model::LogitRows logits) const;
  // Of the last row that ran. Valid until the next pass.
  std::span<const float> LastLogits() const;

 private:
  TimedSequences(const model::Model& model, const kernels::KernelTable& kernels, ThreadTeam& team,
                 const Room& room);
  int ChunkRows() const;  // rows of one sequence in one pass
  bool Run(std::span<const std::unique_ptr<kv::FullKv>> kvs, int n_rows, model::LogitRows logits);
  PassTiming TimeChunks(int n_rows, model::LogitRows logits, bool is_measuring);
  // `to` then holds the first n_tokens of `from` in blocks of its own.
  Status Copy(const kv::FullKv& from, int n_tokens, kv::FullKv& to);

  const model::Model& model_;
  Room room_;
  std::vector<TokenId> tokens_;
  kv::BlockPool pool_;
  std::vector<std::unique_ptr<kv::FullKv>> kvs_;
  model::Pass pass_;
  std::span<const model::GroupLogits> logits_;
};

}  // namespace vericache::apps
