// TOVA: keep what the newest query attends to, the same tokens in every head of a layer.
//
//   s[t] = sum over all query heads of the layer of softmax(q . k_t / sqrt(d)),   q the newest
//   query
//
// The original evicts one token at every step; here the choice is made once per compression, as in
// kvpress, which also keeps the newest token in any case. A later stage of a chain may find other
// tokens in each head: a token's score is then the sum over the heads that still have it.
// Source: Oren et al., "Transformers are Multi-State RNNs", section 3.2; TOVAPress of kvpress.

#include <vector>

#include "base/check.h"
#include "compress/keep_best.h"
#include "compress/method.h"
#include "compress/window_scores.h"

namespace vericache::compress {
namespace {

class Tova final : public Compressor {
 public:
  explicit Tova(Parameters& parameters)
      : budget_{.keep = parameters.Share("keep", 0.5),
                .n_recent = 1,
                .division = ReadDivision(parameters, false)},
        spec_(parameters.Spec()) {}

  Traits GetTraits() const override {
    return {
        .name = "tova", .needs = Needs::kWindowQueries, .n_window = 1, .is_query_agnostic = false};
  }
  std::string Spec() const override { return spec_; }

  // Cost: O(heads per KV head * n * d) per head.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    VC_CHECK(job.hints != nullptr && !job.hints->window.positions.empty(), "no window queries");
    HeadScores scores = ScoreHeads(job, team, [&](const HeadJob& head) {
      std::vector<float> of_head =
          WindowScores(job, {.layer = head.layer, .head = head.head, .n_queries = 1});
      of_head.resize(static_cast<size_t>(head.view.Count()), 0.0f);
      return of_head;
    });
    for (int layer = 0; layer < job.source->Shape().n_layers; ++layer) AddUp(job, layer, scores);
    return KeepBest(job, team, budget_, scores);
  }

 private:
  // Modifies: the scores of a layer, into their sums over its heads, in order of the heads.
  static void AddUp(const Job& job, int layer, HeadScores& scores) {
    const kv::KvShape& shape = job.source->Shape();
    std::vector<float> sums(static_cast<size_t>(job.end.value), 0.0f);  // [position]
    const auto visit = [&](auto&& add_or_take) {
      for (int head = 0; head < shape.n_kv_heads; ++head) {
        const kv::HeadView view(*job.source, layer, head, job.end);
        std::vector<float>& of_head = scores[shape.HeadIndex(layer, head)];
        for (int slot = 0; slot < view.Count(); ++slot) {
          add_or_take(of_head[static_cast<size_t>(slot)],
                      sums[static_cast<size_t>(view.PositionOf(slot).value)]);
        }
      }
    };
    visit([](float& score, float& sum) { sum += score; });
    visit([](float& score, float& sum) { score = sum; });
  }

  Budget budget_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeTova(Parameters& parameters) {
  return std::make_unique<Tova>(parameters);
}

}  // namespace

extern const Method kTova;
const Method kTova{.name = "tova",
                   .summary = "keeps what the newest query attends to, per layer (TOVA)",
                   .make = MakeTova};

}  // namespace vericache::compress
