// Window attention mass in binary64, as the formula reads: what scores of compressors are compared
// with.
#pragma once

#include <cmath>
#include <vector>

#include "tests/support/compress_jobs.h"

namespace vericache::testing_support {

// softmax over the slots a query sees. Modifies: logits, into weights.
inline void Softmax(std::vector<double>& logits) {
  double max = -INFINITY;
  for (const double x : logits) max = std::max(max, x);
  double sum = 0.0;
  for (double& x : logits) sum += x = std::exp(x - max);
  for (double& x : logits) x /= sum;
}

// sum over the newest n_queries and the KV head's query heads of softmax(q . k / sqrt(d) + ln
// degree), causal.
inline std::vector<double> NaiveWindowScores(const kv::HeadSlots& slots,
                                             const compress::WindowQueries& window, int layer,
                                             int head, int n_kv_heads, int n_queries) {
  const auto n_heads = static_cast<size_t>(window.n_heads);
  const auto dims = static_cast<size_t>(window.head_dim);
  const size_t group = n_heads / static_cast<size_t>(n_kv_heads);
  std::vector<double> scores(static_cast<size_t>(slots.Count()), 0.0);
  std::vector<float> key(dims);
  const size_t n_tokens = window.positions.size();
  for (size_t token = n_tokens - std::min(n_tokens, static_cast<size_t>(n_queries));
       token < n_tokens; ++token) {
    for (size_t h = 0; h < group; ++h) {
      const float* q = window.q[static_cast<size_t>(layer)].data() +
                       (token * n_heads + static_cast<size_t>(head) * group + h) * dims;
      std::vector<double> weights;
      for (int slot = 0; slot < slots.Count(); ++slot) {
        const auto i = static_cast<size_t>(slot);
        if (slots.positions[i] > window.positions[token]) break;
        slots.Key(slot, key.data());
        double dot = 0.0;
        for (size_t dim = 0; dim < dims; ++dim) dot += double{q[dim]} * key[dim];
        weights.push_back(dot / std::sqrt(static_cast<double>(dims)) +
                          std::log(static_cast<double>(slots.degrees[i])));
      }
      Softmax(weights);
      for (size_t i = 0; i < weights.size(); ++i) scores[i] += weights[i];
    }
  }
  return scores;
}

}  // namespace vericache::testing_support
