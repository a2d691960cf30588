#include "compress/keep_best.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "compress/head_division.h"
#include "compress/top_slots.h"

namespace vericache::compress {
namespace {

// The slots of a head that compete, [begin, end), and how many of them stay. Those around stay.
struct Contest {
  int begin = 0;
  int end = 0;
  int n_kept = 0;
};

Contest ContestOf(const HeadBudget& budget, int n_slots) {
  const int begin = std::min(budget.n_sinks, n_slots);
  const int end = std::max(begin, n_slots - budget.n_recent);
  const int n_protected = begin + n_slots - end;
  return {begin, end, std::clamp(budget.n_slots - n_protected, 0, end - begin)};
}

std::span<const float> Competing(const std::vector<float>& scores, const Contest& contest) {
  return std::span(scores).subspan(static_cast<size_t>(contest.begin),
                                   static_cast<size_t>(contest.end - contest.begin));
}

// Modifies: the counts of one layer's contests.
void Divide(std::span<Contest> contests, std::span<const std::vector<float>> scores) {
  std::vector<HeadChoice> heads;
  for (size_t head = 0; head < contests.size(); ++head) {
    heads.push_back(
        {.scores = Competing(scores[head], contests[head]), .n_kept = contests[head].n_kept});
  }
  const std::vector<int> counts = DivideAmongHeads(heads);
  for (size_t head = 0; head < contests.size(); ++head) contests[head].n_kept = counts[head];
}

std::vector<Contest> ContestsOf(const Job& job, const Budget& budget, const HeadScores& scores) {
  const kv::KvShape& shape = job.source->Shape();
  std::vector<Contest> contests;
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    const HeadBudget of_head =
        budget.For({.layer = layer, .n_layers = shape.n_layers}, job.end.value);
    for (int head = 0; head < shape.n_kv_heads; ++head) {
      contests.push_back(
          ContestOf(of_head, static_cast<int>(scores[shape.HeadIndex(layer, head)].size())));
    }
    if (budget.division != Division::kHead) continue;
    const size_t first = shape.HeadIndex(layer, 0);
    const auto n = static_cast<size_t>(shape.n_kv_heads);
    Divide(std::span(contests).subspan(first, n), std::span(scores).subspan(first, n));
  }
  return contests;
}

std::vector<int> Kept(const std::vector<float>& scores, const Contest& contest) {
  std::vector<int> kept(static_cast<size_t>(contest.begin));
  std::iota(kept.begin(), kept.end(), 0);
  for (const int slot : TopSlots(Competing(scores, contest), contest.n_kept)) {
    kept.push_back(contest.begin + slot);
  }
  for (int slot = contest.end; slot < static_cast<int>(scores.size()); ++slot) {
    kept.push_back(slot);
  }
  return kept;
}

}  // namespace

HeadScores ScoreHeads(const Job& job, ThreadTeam& team,
                      const std::function<std::vector<float>(const HeadJob&)>& score) {
  const kv::KvShape& shape = job.source->Shape();
  HeadScores scores(static_cast<size_t>(shape.HeadCount()));
  ForEachHead(job, team, [&](const HeadJob& head) {
    scores[shape.HeadIndex(head.layer, head.head)] = score(head);
  });
  return scores;
}

kv::PackedKv KeepBest(const Job& job, ThreadTeam& team, const Budget& budget,
                      const HeadScores& scores) {
  const std::vector<Contest> contests = ContestsOf(job, budget, scores);
  return PackHeads(job, team, [&](const HeadJob& head) {
    const size_t i = job.source->Shape().HeadIndex(head.layer, head.head);
    return kv::PackHead(head.view.Gather(Kept(scores[i], contests[i]), *job.kernels),
                        kernels::KvFormat::kI16);
  });
}

}  // namespace vericache::compress
