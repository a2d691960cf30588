#include "apps/burst_pacer.h"

#include <algorithm>

namespace vericache::apps {
namespace {

constexpr double kDurationMaxUs = 500e3;  // nobody should wait longer for text that is there
constexpr double kNewestShare = 0.5;      // of the newest interval in the smoothed one

}  // namespace

void BurstPacer::Add(std::string_view text, int n_tokens, int64_t now_us) {
  due_ += burst_.substr(n_taken_);
  burst_ = text;
  n_taken_ = 0;
  if (last_arrival_us_) {
    const double newest_us = static_cast<double>(now_us - *last_arrival_us_);
    interval_us_ =
        interval_us_ == 0 ? newest_us : interval_us_ + kNewestShare * (newest_us - interval_us_);
  }
  last_arrival_us_ = now_us;
  begin_us_ = now_us;
  // A lone token is its own flow.
  duration_us_ = n_tokens > 1 ? static_cast<int64_t>(std::min(interval_us_, kDurationMaxUs)) : 0;
}

std::string BurstPacer::Take(int64_t now_us) {
  const int64_t elapsed_us = now_us - begin_us_;
  size_t end = burst_.size();
  if (elapsed_us < duration_us_) {
    const double share = static_cast<double>(elapsed_us) / static_cast<double>(duration_us_);
    end = std::max(n_taken_, static_cast<size_t>(share * static_cast<double>(burst_.size())));
    while (end > n_taken_ && (static_cast<unsigned char>(burst_[end]) & 0xc0u) == 0x80u) --end;
  }
  std::string text = std::move(due_) + burst_.substr(n_taken_, end - n_taken_);
  due_.clear();
  n_taken_ = end;
  return text;
}

std::string BurstPacer::TakeAll() {
  std::string text = std::move(due_) + burst_.substr(n_taken_);
  due_.clear();
  n_taken_ = burst_.size();
  return text;
}

}  // namespace vericache::apps
