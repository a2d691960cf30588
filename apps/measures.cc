#include "apps/measures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"

namespace vericache::apps {
namespace {

double LogSumExp(std::span<const float> logits) {
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  return top + std::log(sum);
}

// The code points of well-formed UTF-8.
std::vector<uint32_t> Characters(std::string_view text) {
  std::vector<uint32_t> characters;
  for (const char byte : text) {
    const auto unit = static_cast<unsigned char>(byte);
    if ((unit & 0xc0u) == 0x80u && !characters.empty()) {
      characters.back() = characters.back() << 8 | unit;
    } else {
      characters.push_back(unit);
    }
  }
  return characters;
}

}  // namespace

double Surprise(std::span<const float> logits, TokenId token) {
  return LogSumExp(logits) - static_cast<double>(logits[static_cast<size_t>(token.value)]);
}

double KlDivergence(std::span<const float> p_logits, std::span<const float> q_logits) {
  VC_CHECK(p_logits.size() == q_logits.size(), "{} and {} logits", p_logits.size(),
           q_logits.size());
  const double p_total = LogSumExp(p_logits);
  const double q_total = LogSumExp(q_logits);
  double sum = 0;
  for (size_t i = 0; i < p_logits.size(); ++i) {
    const double log_p = static_cast<double>(p_logits[i]) - p_total;
    const double log_q = static_cast<double>(q_logits[i]) - q_total;
    sum += std::exp(log_p) * (log_p - log_q);
  }
  return std::max(sum, 0.0);  // rounding
}

// Welford's: no difference of large sums.
void MeanTally::Add(double value) {
  ++n_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(n_);
  squares_ += before * (value - mean_);
}

double MeanTally::Mean() const { return mean_; }

double MeanTally::Error() const {
  if (n_ < 2) return 0;
  const auto n = static_cast<double>(n_);
  return std::sqrt(squares_ / (n - 1) / n);
}

std::optional<int> FirstDifference(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (in_a == a.end() && in_b == b.end()) return std::nullopt;
  return static_cast<int>(in_a - a.begin());
}

int64_t EditDistance(std::string_view a, std::string_view b) {
  const std::vector<uint32_t> from = Characters(a);
  const std::vector<uint32_t> to = Characters(b);
  std::vector<int64_t> row(to.size() + 1);  // of the characters of `from` done so far
  std::iota(row.begin(), row.end(), 0);
  for (const uint32_t character : from) {
    int64_t diagonal = row[0]++;
    for (size_t j = 0; j < to.size(); ++j) {
      const int64_t replaced = diagonal + (character == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

int64_t CharacterCount(std::string_view text) {
  return static_cast<int64_t>(Characters(text).size());
}

}  // namespace vericache::apps
