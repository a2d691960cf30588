// Spreads a burst of text over the time in which the next one is expected: verified decoding
// releases a whole draft at once, and a reader would rather see it flow.
//
// Pure: the caller brings the clock. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vericache::apps {

class BurstPacer {
 public:
  // A burst of n_tokens arrived. What was left of the one before is due at once: text never lags
  // two bursts.
  void Add(std::string_view text, int n_tokens, int64_t now_us);
  // What is due by now: whole UTF-8 characters, in order.
  std::string Take(int64_t now_us);
  // All that is left, due or not.
  std::string TakeAll();
  bool IsEmpty() const { return due_.empty() && n_taken_ == burst_.size(); }

 private:
  std::string due_;     // of earlier bursts
  std::string burst_;   // the newest
  size_t n_taken_ = 0;  // bytes of it given out
  int64_t begin_us_ = 0;
  int64_t duration_us_ = 0;
  double interval_us_ = 0;  // between bursts, smoothed
  std::optional<int64_t> last_arrival_us_;
};

}  // namespace vericache::apps
