// Attention of a pass's rows over the segments of their KVs: cuts the work into (group, head, chunk) or (group, head, row
// block) tasks, runs them on the team, merges partials in chunk order. Task shape depends on the row count, bits do not (I3).
#pragma once

#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "kv/segment.h"

namespace vericache::attend {

// Consecutive rows of one sequence in a pass.
struct Group {
  kv::CausalKv* kv = nullptr;
  int first_row = 0;  // in the pass
  int n_rows = 0;
};

}  // namespace vericache::attend
