// Expected Attention: keep what queries like the newest ones are expected to attend to, weighed by
// what it would add.
//
//   mu, S = mean and covariance of the newest `window` queries of a query head, after RoPE
//   z[t]  = mu . k_t / sqrt(d) + k_t^T S k_t / (2 d)      log of E[exp(q . k_t / sqrt(d))], q
//   normal s[t]  = mean over the head's query heads of softmax(z)[t], times |v_t|;   k, v [n, d]
//
// The original takes mean and covariance before RoPE and turns them by the average rotation of the
// next 512 positions. Here they are those of rotated queries at the newest positions: what the
// forward pass keeps, the rotation averaged over the past window instead of a future one, and the
// spread that the rotation itself adds included. Sinks are kept and stay out of the softmax. A slot
// counts by its degree.
// Source: Devoto et al., "Expected Attention" (arXiv 2510.00636), section 3;
//         ExpectedAttentionPress of kvpress.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/exact_math.h"
#include "compress/keep_best.h"
#include "compress/lengths.h"
#include "compress/method.h"

namespace vericache::compress {
namespace {

constexpr int kKeysAtOnce = 8;
constexpr double kE = 2.718281828459045235;
constexpr double kExpFloor = -600.0;  // below, exp counts as 0

// z of a query head, as sum over j of k_j * (linear_j + sum over i <= j of square_ji * k_i).
class LogExpectation {
 public:
  // Shapes: queries [n_tokens] of [head_dim].
  LogExpectation(const std::vector<const float*>& queries, int head_dim)
      : dims_(static_cast<size_t>(head_dim)), linear_(dims_, 0.0) {
    const auto n = static_cast<double>(queries.size());
    for (const float* q : queries) {
      for (size_t dim = 0; dim < dims_; ++dim) linear_[dim] += q[dim] / n;
    }
    square_.resize(dims_ * (dims_ + 1) / 2, 0.0);
    std::vector<double> deviation(dims_);
    for (const float* q : queries) {
      for (size_t dim = 0; dim < dims_; ++dim) deviation[dim] = q[dim] - linear_[dim];
      double* row = square_.data();
      for (size_t j = 0; j < dims_; row += ++j) {
        // Off the diagonal once for (i, j) and (j, i).
        for (size_t i = 0; i < j; ++i) row[i] += deviation[j] * deviation[i] / (n * head_dim);
        row[j] += deviation[j] * deviation[j] / (2 * n * head_dim);
      }
    }
    const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
    for (double& x : linear_) x *= scale;
  }

  // Shapes: keys [head_dim, 8], z [8].
  void Of(const double* keys, double* z) const {
    double sums[kKeysAtOnce] = {};
    const double* row = square_.data();
    for (size_t j = 0; j < dims_; row += ++j) {
      double factors[kKeysAtOnce];
      std::fill_n(factors, kKeysAtOnce, linear_[j]);
      for (size_t i = 0; i <= j; ++i) {
        for (int k = 0; k < kKeysAtOnce; ++k) factors[k] += row[i] * keys[i * kKeysAtOnce + k];
      }
      for (int k = 0; k < kKeysAtOnce; ++k) sums[k] += factors[k] * keys[j * kKeysAtOnce + k];
    }
    std::copy_n(sums, kKeysAtOnce, z);
  }

 private:
  size_t dims_;
  std::vector<double> linear_;
  std::vector<double> square_;  // rows j of j + 1 values
};

// Keys in groups of 8, dims outermost inside a group, zero behind the last.
std::vector<double> GroupKeys(const kv::HeadSlots& slots) {
  const auto dims = static_cast<size_t>(slots.head_dim);
  const auto n_groups = static_cast<size_t>((slots.Count() + kKeysAtOnce - 1) / kKeysAtOnce);
  std::vector<double> keys(n_groups * dims * kKeysAtOnce, 0.0);
  for (int slot = 0; slot < slots.Count(); ++slot) {
    const kv::I16Slot key = slots.At(slot);
    double* out = keys.data() + static_cast<size_t>(slot / kKeysAtOnce) * dims * kKeysAtOnce;
    for (size_t dim = 0; dim < dims; ++dim) {
      out[dim * kKeysAtOnce + static_cast<size_t>(slot % kKeysAtOnce)] =
          static_cast<double>(key.key_step) * key.key[dim];
    }
  }
  return keys;
}

// scores += degree-weighted softmax of z over slots [begin, n).
void AddSoftmax(const std::vector<double>& z, const kv::HeadSlots& slots, int begin,
                std::vector<double>& scores) {
  const auto first = static_cast<size_t>(begin);
  double max = -std::numeric_limits<double>::infinity();
  for (size_t i = first; i < scores.size(); ++i) max = std::max(max, z[i]);
  std::vector<double> weights(scores.size(), 0.0);
  double sum = 0.0;
  for (size_t i = first; i < scores.size(); ++i) {
    if (z[i] - max < kExpFloor) continue;
    weights[i] = slots.degrees[i] * ExactPow(kE, z[i] - max);
    sum += weights[i];
  }
  for (size_t i = first; i < scores.size(); ++i) scores[i] += weights[i] / sum;
}

class Expected final : public Compressor {
 public:
  explicit Expected(Parameters& parameters)
      : budget_{.keep = parameters.Share("keep", 0.5),
                .n_sinks = parameters.Int("sinks", {.preset = 4, .low = 0, .high = 4096})},
        n_window_(parameters.Int("window", {.preset = 256, .low = 1, .high = 1024})) {
    budget_.division = ReadDivision(parameters, true);
    spec_ = parameters.Spec();
  }

  Traits GetTraits() const override {
    return {.name = "expected",
            .needs = Needs::kWindowQueries,
            .n_window = n_window_,
            .is_query_agnostic = false,
            .is_ragged = budget_.division == Division::kHead};
  }
  std::string Spec() const override { return spec_; }

  // Cost: O(heads per KV head * (n + window) * d^2) per head.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    VC_CHECK(job.hints != nullptr && !job.hints->window.positions.empty(), "no window queries");
    return KeepBest(job, team, budget_,
                    ScoreHeads(job, team, [&](const HeadJob& head) { return Score(job, head); }));
  }

 private:
  std::vector<float> Score(const Job& job, const HeadJob& head) const {
    const WindowQueries& window = job.hints->window;
    const kv::HeadSlots slots = head.view.GatherAll(*job.kernels);
    const std::vector<double> keys = GroupKeys(slots);
    const auto per_group = static_cast<size_t>(slots.head_dim) * kKeysAtOnce;
    std::vector<double> z(keys.size() / static_cast<size_t>(slots.head_dim));
    std::vector<double> sums(static_cast<size_t>(slots.Count()), 0.0);
    const int group = window.n_heads / job.source->Shape().n_kv_heads;
    for (int i = 0; i < group; ++i) {
      const LogExpectation expectation(Queries(window, head.layer, head.head * group + i),
                                       slots.head_dim);
      for (size_t g = 0; g * kKeysAtOnce < z.size(); ++g) {
        expectation.Of(keys.data() + g * per_group, z.data() + g * kKeysAtOnce);
      }
      AddSoftmax(z, slots, std::min(budget_.n_sinks, slots.Count()), sums);
    }
    std::vector<float> scores;
    for (int slot = 0; slot < slots.Count(); ++slot) {
      const double score = sums[static_cast<size_t>(slot)] / group * ValueLength(slots, slot);
      scores.push_back(
          static_cast<float>(std::min(score, double{std::numeric_limits<float>::max()})));
    }
    return scores;
  }

  // Of one query head, the newest n_window_ tokens.
  std::vector<const float*> Queries(const WindowQueries& window, int layer, int query_head) const {
    const auto n_heads = static_cast<size_t>(window.n_heads);
    const size_t n_tokens = window.positions.size();
    std::vector<const float*> queries;
    for (size_t token = n_tokens - std::min(n_tokens, static_cast<size_t>(n_window_));
         token < n_tokens; ++token) {
      queries.push_back(window.q[static_cast<size_t>(layer)].data() +
                        (token * n_heads + static_cast<size_t>(query_head)) *
                            static_cast<size_t>(window.head_dim));
    }
    return queries;
  }

  Budget budget_;
  int n_window_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeExpected(Parameters& parameters) {
  return std::make_unique<Expected>(parameters);
}

}  // namespace

extern const Method kExpected;
const Method kExpected{.name = "expected",
                       .summary =
                           "keeps what queries are expected to attend to "
                           "(Expected Attention)",
                       .make = MakeExpected};

}  // namespace vericache::compress
