#include "decode/text_stream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vericache::decode {

std::string TextStream::Push(std::string_view piece) {
  VC_CHECK(!found_stop_, "text after a stop string");
  joiner_.Push(piece, pending_);
  return Release();
}

std::string TextStream::Finish() {
  joiner_.Flush(pending_);
  std::string text = Release();
  if (!found_stop_) text += std::exchange(pending_, {});
  n_searched_ = 0;
  return text;
}

std::string TextStream::Release() {
  for (size_t end = n_searched_ + 1; end <= pending_.size() && !stop_.empty(); ++end) {
    const size_t n_stop = LongestStopEndingAt(end);
    if (n_stop == 0) continue;
    found_stop_ = true;
    return pending_.substr(0, end - n_stop);
  }
  const size_t n_released = WithheldFrom();
  std::string text = pending_.substr(0, n_released);
  pending_.erase(0, n_released);
  n_searched_ = pending_.size();
  return text;
}

// Length of the longest stop string that ends at byte `end` of the pending text; 0: none does.
size_t TextStream::LongestStopEndingAt(size_t end) const {
  const std::string_view seen = std::string_view(pending_).substr(0, end);
  size_t longest = 0;
  for (const std::string& stop : stop_) {
    if (stop.size() > longest && seen.ends_with(stop)) longest = stop.size();
  }
  return longest;
}

// Where the longest end of the pending text begins that is a beginning of a stop string.
size_t TextStream::WithheldFrom() const {
  const std::string_view text = pending_;
  size_t n_withheld = 0;
  for (const std::string& stop : stop_) {
    for (size_t n = std::min(stop.size() - 1, text.size()); n > n_withheld; --n) {
      if (text.ends_with(std::string_view(stop).substr(0, n))) {
        n_withheld = n;
        break;
      }
    }
  }
  return text.size() - n_withheld;
}

}  // namespace vericache::decode
