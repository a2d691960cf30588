#include "decode/xtc.h"

#include <algorithm>
#include <cmath>

#include "decode/noise.h"

namespace vericache::decode {
namespace {

using model::Candidate;

// The last of the likely ones in llama.cpp's order: by logit, lowest id first among equals.
bool IsLater(const Candidate& a, const Candidate& b) {
  return a.logit < b.logit || (a.logit == b.logit && a.id > b.id);
}

}  // namespace

void ApplyXtc(const XtcParams& params, uint64_t bits, std::vector<Candidate>& candidates) {
  if (candidates.size() < 2) return;
  if (UniformFromBits(bits) > static_cast<double>(params.probability)) return;
  const double top =
      static_cast<double>(std::ranges::max_element(candidates, {}, &Candidate::logit)->logit);
  const auto weight = [top](const Candidate& c) {
    return std::exp(static_cast<double>(c.logit) - top);
  };
  double total = 0;
  for (const Candidate& c : candidates) total += weight(c);
  const double least = static_cast<double>(params.threshold) * total;

  const Candidate* last = nullptr;
  for (const Candidate& c : candidates) {
    if (weight(c) >= least && (last == nullptr || IsLater(c, *last))) last = &c;
  }
  if (last == nullptr) return;
  const Candidate kept = *last;
  std::erase_if(candidates, [&](const Candidate& c) { return IsLater(kept, c); });
}

}  // namespace vericache::decode
