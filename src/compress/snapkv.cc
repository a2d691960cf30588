// SnapKV: keep what the newest queries attend to, and the window they come from.
//
//   s[t]   = sum over window queries and the head's query heads of softmax(q . k_t / sqrt(d))
//   kept   = top of avgpool(s, kernel) before the window, and the window
//
// Query heads that share a KV head are averaged before the choice (the original scores each query
// head on its own copy of the keys). Pooling pads with zeros and keeps neighbours of a strong slot
// together. The window is the newest tokens before the compression; as a rule they still lie in the
// exact tail behind the body, and then the whole budget goes to the top.
// Source: Li et al., "SnapKV: LLM Knows What You are Looking for Before Generation", section 4;
//         window 64, kernel 5 as in its code and in kvpress.

#include <algorithm>
#include <span>
#include <vector>

#include "base/check.h"
#include "compress/keep_best.h"
#include "compress/method.h"
#include "compress/window_scores.h"

namespace vericache::compress {
namespace {

constexpr int kMaxWindow = 64;

// Means over `width` neighbours, zero outside. Shapes: [n] both.
std::vector<float> AveragePool(std::span<const float> scores, int width) {
  const int n = static_cast<int>(scores.size());
  const int reach = width / 2;
  std::vector<float> pooled(scores.size());
  for (int i = 0; i < n; ++i) {
    float sum = 0.0f;
    for (int j = std::max(0, i - reach); j <= std::min(n - 1, i + reach); ++j) {
      sum += scores[static_cast<size_t>(j)];
    }
    pooled[static_cast<size_t>(i)] = sum / static_cast<float>(width);
  }
  return pooled;
}

class SnapKv final : public Compressor {
 public:
  explicit SnapKv(Parameters& parameters)
      : keep_(parameters.Share("keep", 0.25)),
        n_window_(parameters.Int("window", {.preset = kMaxWindow, .low = 1, .high = kMaxWindow})),
        kernel_(parameters.Choice("kernel", 5, {1, 3, 5, 7, 9, 11, 13})),
        division_(ReadDivision(parameters, true)),
        spec_(parameters.Spec()) {}

  Traits GetTraits() const override {
    return {.name = "snapkv",
            .needs = Needs::kWindowQueries,
            .n_window = n_window_,
            .is_query_agnostic = false,
            .is_ragged = division_ == Division::kHead};
  }
  std::string Spec() const override { return spec_; }

  // Cost: O(window * heads per KV head * n * d) per head.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    VC_CHECK(job.hints != nullptr && !job.hints->window.positions.empty(), "no window queries");
    const std::vector<Position>& queries = job.hints->window.positions;
    const Position window_begin =
        queries[queries.size() - std::min(queries.size(), static_cast<size_t>(n_window_))];
    // The window, or what the budget has room for of it.
    const int n_in_window = std::max(0, job.end.value - window_begin.value);
    const Budget budget{.keep = keep_,
                        .n_recent = std::min(n_in_window, static_cast<int>(keep_ * job.end.value)),
                        .division = division_};
    return KeepBest(job, team, budget, ScoreHeads(job, team, [&](const HeadJob& head) {
                      return Score(job, head, window_begin);
                    }));
  }

 private:
  // Of the slots before the window; those in it are not asked.
  std::vector<float> Score(const Job& job, const HeadJob& head, Position window_begin) const {
    std::vector<float> scores =
        WindowScores(job, {.layer = head.layer, .head = head.head, .n_queries = n_window_});
    scores.resize(
        static_cast<size_t>(std::min(head.view.Count(), head.view.CountBefore(window_begin))));
    std::vector<float> pooled = AveragePool(scores, kernel_);
    pooled.resize(static_cast<size_t>(head.view.Count()), 0.0f);
    return pooled;
  }

  double keep_;
  int n_window_;
  int kernel_;
  Division division_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeSnapKv(Parameters& parameters) {
  return std::make_unique<SnapKv>(parameters);
}

}  // namespace

extern const Method kSnapKv;
const Method kSnapKv{.name = "snapkv",
                     .summary = "keeps what the newest queries attend to (SnapKV)",
                     .make = MakeSnapKv};

}  // namespace vericache::compress
