#include "apps/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "apps/tell.h"

namespace vericache::apps {
namespace {

constexpr double kPatienceS = 0.7;  // shorter prefills need no bar
constexpr int kBarWidth = 24;

}  // namespace

std::string ProgressLine(const std::string& label, int n_done, int n_prompt, double elapsed_s) {
  const double share = static_cast<double>(n_done) / std::max(n_prompt, 1);
  const auto n_full = static_cast<size_t>(share * kBarWidth);
  const double speed = elapsed_s > 0 ? n_done / elapsed_s : 0;
  const double left_s = speed > 0 ? (n_prompt - n_done) / speed : 0;
  return fmt::format("{}{}prefill [{}{}] {}/{} tokens, {:.0f} tokens/s, {:.0f} s left", label,
                     label.empty() ? "" : " ", std::string(n_full, '#'),
                     std::string(kBarWidth - n_full, '.'), n_done, n_prompt, speed, left_s);
}

PrefillProgress::PrefillProgress(std::string label, int n_prompt, bool is_shown)
    : label_(std::move(label)),
      n_prompt_(n_prompt),
      is_shown_(is_shown),
      begin_(std::chrono::steady_clock::now()) {}

void PrefillProgress::Show(int n_done) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
  if (!is_shown_ || elapsed.count() < kPatienceS || n_done >= n_prompt_) return;
  is_on_screen_ = true;
  Tell("\r\033[K{}", ProgressLine(label_, n_done, n_prompt_, elapsed.count()));
  std::fflush(stderr);
}

void PrefillProgress::Clear() {
  if (is_on_screen_) Tell("\r\033[K");
  is_on_screen_ = false;
}

}  // namespace vericache::apps
