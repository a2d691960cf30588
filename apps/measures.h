// How good a distribution is, and how far apart two of them or two texts are.
//
// Threads: pure. Distributions are softmaxes of logits, without filters and temperature; logarithms
// are natural.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/ids.h"

namespace vericache::apps {

// -log of the token's probability.
double Surprise(std::span<const float> logits, TokenId token);
// sum p log(p / q), of the softmaxes p and q. Requires: as many logits of both.
double KlDivergence(std::span<const float> p_logits, std::span<const float> q_logits);

// The mean of numbers that come one by one, and its standard error.
class MeanTally {
 public:
  void Add(double value);
  int64_t Count() const { return n_; }
  double Mean() const;   // 0 of none
  double Error() const;  // 0 of less than two

 private:
  int64_t n_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // of the distances to the mean, summed
};

// Tokens that both share from the start; nullopt if all are equal and there are as many.
std::optional<int> FirstDifference(std::span<const TokenId> a, std::span<const TokenId> b);

// Characters to insert, delete or replace (Levenshtein), of texts in UTF-8. Time: the product of
// their lengths.
int64_t EditDistance(std::string_view a, std::string_view b);
int64_t CharacterCount(std::string_view text);

}  // namespace vericache::apps
