// H2O: keep the heavy hitters of attention, and the newest tokens.
//
//   s[t]  = sum over queries and the head's query heads of softmax(q . k_t / sqrt(d)),
//           divided by the number of queries that see t
//   kept  = the newest `recent` of the budget, and the top of s before them
//
// The original adds up the attention of all tokens from the first on. Here the sum runs over the
// newest `window` tokens: that is what the forward pass keeps of the queries, and a prompt's early
// queries say the least about what is asked at its end. The division is that of kvpress, so that
// the newest tokens, which few queries see, are not at a loss.
// Source: Zhang et al., "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large
//         Language Models", section 4, with equal shares for heavy and recent tokens;
//         ObservedAttentionPress of kvpress.

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "compress/keep_best.h"
#include "compress/method.h"
#include "compress/window_scores.h"

namespace vericache::compress {
namespace {

class H2o final : public Compressor {
 public:
  explicit H2o(Parameters& parameters)
      : keep_(parameters.Share("keep", 0.5)),
        recent_(parameters.Real("recent", {.preset = 0.5})),
        n_window_(parameters.Int("window", {.preset = 256, .low = 1, .high = 1024})),
        division_(ReadDivision(parameters, true)),
        spec_(parameters.Spec()) {}

  Traits GetTraits() const override {
    return {.name = "h2o",
            .needs = Needs::kWindowQueries,
            .n_window = n_window_,
            .is_query_agnostic = false,
            .is_ragged = division_ == Division::kHead};
  }
  std::string Spec() const override { return spec_; }

  // Cost: O(window * heads per KV head * n * d) per head.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    VC_CHECK(job.hints != nullptr && !job.hints->window.positions.empty(), "no window queries");
    const int n_share = static_cast<int>(keep_ * job.end.value);
    const Budget budget{
        .keep = keep_, .n_recent = static_cast<int>(recent_ * n_share), .division = division_};
    return KeepBest(job, team, budget,
                    ScoreHeads(job, team, [&](const HeadJob& head) { return Score(job, head); }));
  }

 private:
  std::vector<float> Score(const Job& job, const HeadJob& head) const {
    std::vector<float> scores =
        WindowScores(job, {.layer = head.layer, .head = head.head, .n_queries = n_window_});
    scores.resize(static_cast<size_t>(head.view.Count()), 0.0f);
    const std::vector<Position>& queries = job.hints->window.positions;
    const auto n_asked = std::min(queries.size(), static_cast<size_t>(n_window_));
    auto first_seeing = queries.end() - static_cast<std::ptrdiff_t>(n_asked);
    const int n_seen_by_all = head.view.CountBefore(*first_seeing);
    for (size_t slot = 0; slot < scores.size(); ++slot) {
      if (static_cast<int>(slot) >= n_seen_by_all) {
        const Position position = head.view.PositionOf(static_cast<int>(slot));
        while (first_seeing != queries.end() && *first_seeing < position) ++first_seeing;
      }
      const auto n_seeing = queries.end() - first_seeing;
      if (n_seeing > 0) scores[slot] /= static_cast<float>(n_seeing);
    }
    return scores;
  }

  double keep_;
  double recent_;
  int n_window_;
  Division division_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeH2o(Parameters& parameters) {
  return std::make_unique<H2o>(parameters);
}

}  // namespace

extern const Method kH2o;
const Method kH2o{.name = "h2o",
                  .summary = "keeps the heavy hitters of attention and the newest tokens (H2O)",
                  .make = MakeH2o};

}  // namespace vericache::compress
