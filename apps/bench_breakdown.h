// Where the time of a step goes, by part of the layer, the choice of the token included.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "apps/bench_machine.h"
#include "apps/row_timing.h"
#include "base/result.h"
#include "decode/sampler.h"
#include "model/forward.h"
#include "model/tokenizer.h"

namespace vericache::apps {

struct Breakdown {
  double seconds = 0;  // of the pass, without sampling
  model::PassTimes parts{};
  double sampling_s = 0;  // of all rows with logits
};

// Takes steps apart; samples as `vericache run` does when nothing else is asked for.
class StepProfiler {
 public:
  // Errors: those of Tokenizer::Load.
  static Result<StepProfiler> Make(const BenchMachine& machine);
  // The fastest of n_reps passes.
  Breakdown Measure(TimedSequences& sequences, int n_rows, model::LogitRows logits, int n_reps);

 private:
  StepProfiler(std::unique_ptr<model::Tokenizer> tokenizer, decode::Sampler sampler)
      : tokenizer_(std::move(tokenizer)), sampler_(std::move(sampler)) {}

  std::unique_ptr<model::Tokenizer> tokenizer_;
  decode::Sampler sampler_;
};

// {"norm": ms, ..., "sampling": ms}
nlohmann::ordered_json BreakdownObject(const Breakdown& breakdown);
// A line per part, the largest first.
std::string BreakdownTable(const Breakdown& breakdown, int depth, int n_rows);

}  // namespace vericache::apps
