#include "compress/budget.h"

namespace vericache::compress {
namespace {

constexpr double kSteepness = 20.0;  // beta of PyramidKV
constexpr std::string_view kDivisionNames[] = {"uniform", "layer", "head"};

// Of n_free slots that a layer keeps on average out of n_candidates, those of one layer.
int PyramidShare(const LayerAt& at, int n_free, int n_candidates) {
  if (at.n_layers < 2) return n_free;
  double last = n_free / kSteepness;
  double first = 2.0 * n_free - last;
  if (first > n_candidates) {
    first = n_candidates;
    last = 2.0 * n_free - first;
  }
  const double step = (first - last) / (at.n_layers - 1);
  return std::clamp(static_cast<int>(first - at.layer * step), 0, n_candidates);
}

}  // namespace

HeadBudget Budget::For(const LayerAt& at, int n_tokens) const {
  const int n_protected = std::min(n_tokens, n_sinks + n_recent);
  int n_slots = std::max(n_protected, static_cast<int>(keep * n_tokens));
  if (division == Division::kLayer) {
    n_slots = n_protected + PyramidShare(at, n_slots - n_protected, n_tokens - n_protected);
  }
  return {.n_slots = n_slots,
          .n_sinks = std::min(n_tokens, n_sinks),
          .n_recent = n_protected - std::min(n_tokens, n_sinks)};
}

Division ReadDivision(Parameters& parameters, bool offers_heads) {
  const auto& [uniform, layer, head] = kDivisionNames;
  return static_cast<Division>(offers_heads ? parameters.Word("budget", {uniform, layer, head})
                                            : parameters.Word("budget", {uniform, layer}));
}

std::string_view NameOf(Division division) { return kDivisionNames[static_cast<size_t>(division)]; }

}  // namespace vericache::compress
