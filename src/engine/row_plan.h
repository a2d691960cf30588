// Which sessions' rows share the next pass: a pure function of what they want and of two budgets.
//
// Decoding rows (plain, draft, verify) come whole or not at all, least recently served first, so
// that no session starves while many verify at once. Prefill rows have a budget of their own and go
// to the oldest request first: decoding never waits for more than one chunk, and a prompt is never
// starved by decoding.
// Threads: pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vericache::engine {

struct RowDemand {
  bool is_prefill = false;
  int n_rows = 0;           // 0: none now
  int64_t last_served = 0;  // pass number; a smaller one goes first
};

struct RowBudget {
  int n_decode = 0;   // at least the rows of the longest verify
  int n_prefill = 0;  // at least 1
};

struct RowGrant {
  int session = 0;  // index of its demand
  int n_rows = 0;
};

// Demands are in order of arrival.
std::vector<RowGrant> PlanRows(std::span<const RowDemand> demands, const RowBudget& budget);

}  // namespace vericache::engine
