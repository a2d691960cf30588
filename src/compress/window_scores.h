// Attention mass that the newest queries give to each slot: the score of SnapKV and its relatives.
#pragma once

#include <vector>

#include "compress/compressor.h"

namespace vericache::compress {

// One head, and how many of the newest window queries to ask.
struct WindowJob {
  int layer = 0;
  int head = 0;  // KV head
  int n_queries = 0;
};

// score[slot] = sum over the window queries and the query heads of the KV head of
// softmax(q . k / sqrt(d) + ln degree), causal, over every slot that the source has up to the
// query. Slots in order of the source up to the newest query, those at or behind job.end included.
// The exponential is the polynomial of docs/numerics.md section 3 without fused steps: the scores
// are compared with each other only, and baseline code vectorises.
// Requires: hints with at least one query.
// Cost:     O(n * d) per query and head.
std::vector<float> WindowScores(const Job& job, const WindowJob& window);

}  // namespace vericache::compress
