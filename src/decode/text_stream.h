// The text of an answer as it may be shown: whole characters, nothing of a stop string.
//
// The longest end of the text that could begin a stop string is withheld until the next characters
// decide. Which stop string ends the text depends on the text alone, not on how tokens cut it: the
// first to be complete, the longest of those that are complete at the same byte.
// Threads: an object is used by one thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "decode/utf8.h"

namespace vericache::decode {

class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stop) : stop_(std::move(stop)) {}

  // Takes one token's bytes. Returns the text that they release.
  // Requires: no stop string was found before.
  std::string Push(std::string_view piece);
  // The end of the answer without a stop string: everything withheld.
  std::string Finish();
  bool FoundStop() const { return found_stop_; }

 private:
  std::string Release();
  size_t LongestStopEndingAt(size_t end) const;
  size_t WithheldFrom() const;

  std::vector<std::string> stop_;
  Utf8Joiner joiner_;
  std::string pending_;    // whole characters, not yet released
  size_t n_searched_ = 0;  // bytes of pending_ known to end no stop string
  bool found_stop_ = false;
};

}  // namespace vericache::decode
