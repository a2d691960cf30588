// A bar on standard error while a long prompt is prefilled. Shown on a terminal only, and only when
// it lasts.
//
// Threads: one.
#pragma once

#include <chrono>
#include <string>

namespace vericache::apps {

class PrefillProgress {
 public:
  // label: what is being prefilled, e.g. a mode; may be empty.
  PrefillProgress(std::string label, int n_prompt, bool is_shown);
  ~PrefillProgress() { Clear(); }
  PrefillProgress(const PrefillProgress&) = delete;
  PrefillProgress& operator=(const PrefillProgress&) = delete;

  void Show(int n_done);
  // Takes the bar away; the next text begins on a clean line.
  void Clear();

 private:
  std::string label_;
  int n_prompt_;
  bool is_shown_;
  bool is_on_screen_ = false;
  std::chrono::steady_clock::time_point begin_;
};

// "prefill [######............] 2304/7012 tokens, 1520 tokens/s, 3 s left"
std::string ProgressLine(const std::string& label, int n_done, int n_prompt, double elapsed_s);

}  // namespace vericache::apps
