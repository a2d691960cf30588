#include "model/rope.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/exact_math.h"

namespace vericache::model {
namespace {

constexpr int kBlockPositions = 256;
constexpr double kTwoPi = 6.283185307179586;

// The share of the unscaled frequency that YaRN keeps for each pair: 1 for fast pairs, 0 for slow.
class YarnRamp {
 public:
  explicit YarnRamp(const RopeParams& params)
      : low_(std::max(0.0, std::floor(PairTurning(params, params.beta_fast)))),
        high_(std::min(params.n_dims - 1.0, std::ceil(PairTurning(params, params.beta_slow)))) {}

  double Share(int pair) const {
    const double t = (static_cast<double>(pair) - low_) / std::max(0.001, high_ - low_);
    return 1.0 - std::min(1.0, std::max(0.0, t));
  }

 private:
  // The pair (a fraction) that turns n_turns times in the original context.
  static double PairTurning(const RopeParams& params, double n_turns) {
    const double context = params.original_context;
    return params.n_dims * ExactLog(context / (n_turns * kTwoPi)) / (2.0 * ExactLog(params.base));
  }

  double low_;
  double high_;
};

}  // namespace

RopeTable::RopeTable(const RopeParams& params) : magnitude_(params.attention_factor) {
  VC_CHECK(params.n_dims > 0 && params.n_dims % 2 == 0, "n_dims = {}", params.n_dims);
  const auto n_pairs = static_cast<size_t>(params.n_dims / 2);
  const auto& factors = params.frequency_factors;
  VC_CHECK(factors.empty() || factors.size() == n_pairs, "{} factors", factors.size());
  for (size_t i = 0; i < n_pairs; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / params.n_dims;
    const double factor = factors.empty() ? 1.0 : static_cast<double>(factors[i]);
    frequencies_.push_back(ExactPow(params.base, exponent) / factor);
  }
  switch (params.scaling) {
    case RopeScaling::kNone:
      break;
    case RopeScaling::kLinear:
      for (double& frequency : frequencies_) frequency = frequency / params.factor;
      break;
    case RopeScaling::kYarn: {
      const YarnRamp ramp(params);
      for (size_t i = 0; i < n_pairs; ++i) {
        const double share = ramp.Share(static_cast<int>(i));
        const double slowed = frequencies_[i] / params.factor;
        frequencies_[i] = slowed * (1.0 - share) + frequencies_[i] * share;
      }
      if (params.factor > 1.0) magnitude_ = (1.0 + 0.1 * ExactLog(params.factor)) * magnitude_;
      break;
    }
  }
}

void RopeTable::Extend(int n_positions) {
  const size_t n_pairs = frequencies_.size();
  while (static_cast<int>(blocks_.size()) * kBlockPositions < n_positions) {
    std::vector<float>& block = blocks_.emplace_back(kBlockPositions * 2 * n_pairs);
    const int first = (static_cast<int>(blocks_.size()) - 1) * kBlockPositions;
    for (int i = 0; i < kBlockPositions; ++i) {
      float* cos_sin = block.data() + static_cast<size_t>(i) * 2 * n_pairs;
      for (size_t pair = 0; pair < n_pairs; ++pair) {
        const SinCos turn = ExactSinCos(static_cast<double>(first + i) * frequencies_[pair]);
        cos_sin[pair] = static_cast<float>(turn.cos * magnitude_);
        cos_sin[n_pairs + pair] = static_cast<float>(turn.sin * magnitude_);
      }
    }
  }
}

const float* RopeTable::CosSin(Position position) const {
  const auto block = static_cast<size_t>(position.value / kBlockPositions);
  VC_DCHECK(block < blocks_.size(), "position {}", position.value);
  const auto row = static_cast<size_t>(position.value % kBlockPositions);
  return blocks_[block].data() + row * 2 * frequencies_.size();
}

}  // namespace vericache::model
