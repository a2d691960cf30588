// Eviction by score: what methods share that rank the slots of a head and keep the best.
#pragma once

#include <functional>
#include <vector>

#include "compress/budget.h"
#include "compress/compressor.h"
#include "compress/per_head.h"

namespace vericache::compress {

// [layer * n_kv_heads + head][slots of the head's view]
using HeadScores = std::vector<std::vector<float>>;

// score(head job) of every head. The calls run concurrently.
HeadScores ScoreHeads(const Job& job, ThreadTeam& team,
                      const std::function<std::vector<float>(const HeadJob&)>& score);

// Every head's protected slots and its best others, as many as the budget says, bit for bit. Among
// equal scores the lower slot wins; NaN ranks lowest.
// Requires: scores as ScoreHeads gives them; no +infinity.
// Cost:     O(n + kept * d) per head.
kv::PackedKv KeepBest(const Job& job, ThreadTeam& team, const Budget& budget,
                      const HeadScores& scores);

}  // namespace vericache::compress
