// The forward pass: rows of every kind together, over whatever KV each brings. Row invariant: a row's logits depend on that row
// and the KV it sees, never on what else is in the pass, on threads or on the instruction set (I3).
//
// Threads: one pass at a time per Pass object; a Model is immutable and shared.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "kv/segment.h"
#include "model/model.h"

namespace vericache::model {

enum class LogitRows : uint8_t { kNone, kLast, kAll };

// Collects the queries (after RoPE) of the newest tokens: what query-aware compressors ask for. A ring per layer.
class QueryTap;

// Consecutive rows of one sequence.
struct RowGroup {
  std::span<const TokenId> tokens;
  Position first_position{0};       // of tokens[0]; equals the tokens the KV already holds
  kv::CausalKv* kv = nullptr;       // rows are appended behind its committed slots; the caller commits
  LogitRows logits = LogitRows::kLast;
  QueryTap* tap = nullptr;          // optional
};

// Logits of one group's wanted rows, valid until the next Run.
struct GroupLogits {
  int n_rows = 0;
  int n_vocab = 0;
  const float* data = nullptr;                 // [n_rows, n_vocab]
  std::span<const uint8_t> is_finite;          // [n_rows] 0: a NaN or infinity arose anywhere in this row's pass
  std::span<const float> Row(int row) const {
    return {data + static_cast<size_t>(row) * static_cast<size_t>(n_vocab), static_cast<size_t>(n_vocab)};
  }
};

// A pass's buffers and threads. Reused from pass to pass.
class Pass {
 public:
  // max_rows bounds the rows of one Run (512 is plenty: prefill chunks).
  Pass(const Model& model, const kernels::KernelTable& kernels, ThreadTeam& team, int max_rows);
  ~Pass();

  // Runs all groups' rows through the model; K and V go to each group's KV (uncommitted).
  // Requires: the rows of all groups together <= max_rows; each KV has room for its rows; token ids < n_vocab;
  //           positions < n_context.
  // Returns:  one entry per group, in order.
  std::span<const GroupLogits> Run(std::span<const RowGroup> groups);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vericache::model
