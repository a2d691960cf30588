#include "apps/bench_breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

namespace vericache::apps {
namespace {

// Every part with its seconds, in the order of the layer.
std::vector<std::pair<std::string_view, double>> NamedParts(const Breakdown& breakdown) {
  std::vector<std::pair<std::string_view, double>> parts;
  for (size_t i = 0; i < model::kPassPartCount; ++i) {
    parts.emplace_back(model::kPassPartNames[i], breakdown.parts.seconds[i]);
  }
  parts.emplace_back("sampling", breakdown.sampling_s);
  return parts;
}

}  // namespace

Result<StepProfiler> StepProfiler::Make(const BenchMachine& machine) {
  auto tokenizer = model::Tokenizer::Load(machine.model_path);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  const auto params = MakeSampling(SamplingOptions{});
  if (!params) return tl::unexpected(params.error());
  auto sampler = decode::Sampler::Make(*params, **tokenizer, machine.model->Config().n_context);
  if (!sampler) return tl::unexpected(sampler.error());
  return StepProfiler(std::move(*tokenizer), std::move(*sampler));
}

Breakdown StepProfiler::Measure(TimedSequences& sequences, int n_rows, model::LogitRows logits,
                                int n_reps) {
  Breakdown best;
  for (int rep = 0; rep < n_reps; ++rep) {
    const PassTiming timing = sequences.TimeParts(n_rows, logits);
    const auto begin = std::chrono::steady_clock::now();
    sampler_.Sample(sequences.LastLogits(), Position{sequences.Depth()});
    const std::chrono::duration<double> sampling = std::chrono::steady_clock::now() - begin;
    if (rep > 0 && timing.seconds >= best.seconds) continue;
    const int n_sampled = logits == model::LogitRows::kAll ? n_rows : 1;
    best = {timing.seconds, timing.parts, sampling.count() * n_sampled};
  }
  return best;
}

nlohmann::ordered_json BreakdownObject(const Breakdown& breakdown) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& [name, seconds] : NamedParts(breakdown)) {
    object[std::string(name)] = seconds * 1e3;
  }
  return object;
}

std::string BreakdownTable(const Breakdown& breakdown, int depth, int n_rows) {
  const double step_s = breakdown.seconds + breakdown.sampling_s;
  std::string text = fmt::format("depth {}, {} row{}: {:.2f} ms\n", depth, n_rows,
                                 n_rows == 1 ? "" : "s", step_s * 1e3);
  auto parts = NamedParts(breakdown);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, seconds] : parts) {
    fmt::format_to(std::back_inserter(text), "  {:<17} {:>9.3f} ms {:>5.1f} %\n", name,
                   seconds * 1e3, 100 * seconds / step_s);
  }
  return text;
}

}  // namespace vericache::apps
