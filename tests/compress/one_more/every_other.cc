// Every other token: a method as someone might add one. It is in no library; one_more_test.cc says
// what it is for.

#include <vector>

#include "compress/keep_best.h"
#include "compress/method.h"

namespace vericache::compress {
namespace {

class EveryOther final : public Compressor {
 public:
  explicit EveryOther(Parameters& parameters)
      : budget_{.keep = parameters.Share("keep", 0.5), .division = ReadDivision(parameters, true)},
        spec_(parameters.Spec()) {}

  Traits GetTraits() const override {
    return {.name = "every_other", .is_ragged = budget_.division == Division::kHead};
  }
  std::string Spec() const override { return spec_; }

  // Cost: O(n) per head, and the copy.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    return KeepBest(job, team, budget_, ScoreHeads(job, team, [](const HeadJob& head) {
                      std::vector<float> scores(static_cast<size_t>(head.view.Count()), 0.0f);
                      for (size_t slot = 0; slot < scores.size(); slot += 2) scores[slot] = 1.0f;
                      return scores;
                    }));
  }

 private:
  Budget budget_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeEveryOther(Parameters& parameters) {
  return std::make_unique<EveryOther>(parameters);
}

}  // namespace

extern const Method kEveryOther;
const Method kEveryOther{
    .name = "every_other", .summary = "keeps every other token", .make = MakeEveryOther};

}  // namespace vericache::compress
