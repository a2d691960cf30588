// Pairwise covering: a few cases that hold every pair of values of any two factors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace vericache::testing_support {

// Shapes: n_values [factors]; each case [factors], case[f] in [0, n_values[f]).
// Greedy: a case starts from the first pair that is still missing and takes, factor by factor, the
// value that adds most missing pairs with those chosen before (the least used one among equals).
class Pairwise {
 public:
  explicit Pairwise(std::vector<int> n_values) : n_values_(std::move(n_values)) {
    for (size_t a = 0; a < n_values_.size(); ++a) {
      offsets_.push_back(n_total_);
      n_total_ += static_cast<size_t>(n_values_[a]);
    }
    is_covered_.assign(n_total_ * n_total_, false);
    n_used_.assign(n_total_, 0);
  }

  std::vector<std::vector<int>> Cases() {
    std::vector<std::vector<int>> cases;
    for (size_t a = 0; a < n_values_.size(); ++a) {
      for (size_t b = a + 1; b < n_values_.size(); ++b) {
        for (int va = 0; va < n_values_[a]; ++va) {
          for (int vb = 0; vb < n_values_[b]; ++vb) {
            if (IsCovered(a, va, b, vb)) continue;
            cases.push_back(CaseWith(a, va, b, vb));
          }
        }
      }
    }
    return cases;
  }

 private:
  size_t IdOf(size_t factor, int value) const {
    return offsets_[factor] + static_cast<size_t>(value);
  }
  bool IsCovered(size_t a, int va, size_t b, int vb) const {
    return is_covered_[IdOf(a, va) * n_total_ + IdOf(b, vb)];
  }

  std::vector<int> CaseWith(size_t a, int va, size_t b, int vb) {
    std::vector<int> chosen(n_values_.size(), -1);
    chosen[a] = va;
    chosen[b] = vb;
    for (size_t f = 0; f < n_values_.size(); ++f) {
      if (chosen[f] >= 0) continue;
      chosen[f] = BestValue(chosen, f);
    }
    for (size_t f = 0; f < chosen.size(); ++f) {
      ++n_used_[IdOf(f, chosen[f])];
      for (size_t g = 0; g < chosen.size(); ++g) {
        if (f != g) is_covered_[IdOf(f, chosen[f]) * n_total_ + IdOf(g, chosen[g])] = true;
      }
    }
    return chosen;
  }

  int BestValue(const std::vector<int>& chosen, size_t f) const {
    int best = 0;
    std::pair<int, int> best_score{-1, 0};
    for (int value = 0; value < n_values_[f]; ++value) {
      int n_new = 0;
      for (size_t g = 0; g < chosen.size(); ++g) {
        if (chosen[g] >= 0 && !IsCovered(f, value, g, chosen[g])) ++n_new;
      }
      const std::pair<int, int> score{n_new, -n_used_[IdOf(f, value)]};
      if (score > best_score) {
        best_score = score;
        best = value;
      }
    }
    return best;
  }

  std::vector<int> n_values_;
  std::vector<size_t> offsets_;
  size_t n_total_ = 0;
  std::vector<bool> is_covered_;  // [value, value], over all factors
  std::vector<int> n_used_;       // [value]
};

}  // namespace vericache::testing_support
