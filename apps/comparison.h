// The same request in full, lossy and verified mode, side by side: is the verified answer the full
// one, and what does it gain.
#pragma once

#include <optional>
#include <string>

#include "apps/generation.h"

namespace vericache::apps {

struct Comparison {
  Generation full;
  Generation lossy;
  Generation verified;

  // Tokens that two answers share from the start; nullopt if all are equal and there are as many.
  static std::optional<int> FirstDifference(const Generation& a, const Generation& b);

  // Tokens equal, and the logits of every committed row bit-equal.
  bool IsIdentical() const;
  double Speedup() const;  // verified over full; 0 if either has no speed
};

// A line per mode: tokens/s, speedup, identity, first difference, KV read by a step.
std::string ComparisonTable(const Comparison& comparison);

}  // namespace vericache::apps
