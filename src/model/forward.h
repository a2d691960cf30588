// The forward pass: rows of every kind together, over whatever KV each brings.
//
// Row invariant: a row's logits depend on that row and the KV it sees, never on what else is in the
// pass, on threads or on the instruction set (I3).
// Threads: one pass at a time per Pass object; a Model is immutable and shared.
// Source:  docs/numerics.md section 4.
#pragma once

#include <memory>
#include <span>

#include "base/ids.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "kv/segment.h"
#include "model/model.h"
#include "model/pass_parts.h"
#include "model/query_tap.h"

namespace vericache::model {

enum class LogitRows : uint8_t { kNone, kLast, kAll };

// Consecutive rows of one sequence.
struct RowGroup {
  std::span<const TokenId> tokens;
  Position first_position{0};  // of tokens[0]; equals the tokens the KV already holds
  kv::CausalKv* kv = nullptr;  // rows go behind its committed slots; the caller commits
  LogitRows logits = LogitRows::kLast;
  QueryTap* tap = nullptr;  // optional
};

// Logits of one group's wanted rows, valid until the next Run.
struct GroupLogits {
  int n_rows = 0;
  int n_vocab = 0;
  const float* data = nullptr;  // [n_rows, n_vocab]; a NaN or infinity is stored as 0
  // [n_rows] 0: a NaN or infinity arose anywhere in this row's pass.
  std::span<const uint8_t> is_finite;
  // Of all the group's rows, those without logits included: what a prefill must ask.
  bool are_all_rows_finite = true;

  std::span<const float> Row(int row) const {
    return {data + static_cast<size_t>(row) * static_cast<size_t>(n_vocab),
            static_cast<size_t>(n_vocab)};
  }
};

// A pass's memory and threads. Reused from pass to pass.
class Pass {
 public:
  // max_rows bounds the rows of one Run (512 is plenty: prefill chunks).
  Pass(const Model& model, const kernels::KernelTable& kernels, ThreadTeam& team, int max_rows);
  ~Pass();

  // Runs all groups' rows through the model; K and V go to each group's KV (uncommitted).
  // Requires: 1 <= the rows of all groups together <= max_rows, no group is empty; each KV has room
  //           for its rows and belongs to one group; 0 <= token ids < n_vocab.
  // Returns:  one entry per group, in order.
  std::span<const GroupLogits> Run(std::span<const RowGroup> groups);

  // Whether the next passes take their times (two clock readings per part: under 1 %).
  void MeasureParts(bool is_measuring);
  // Of the last Run that was measured: the mean over threads.
  PassTimes PartTimes() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace vericache::model
