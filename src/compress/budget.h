// How much of a head a method may keep. A concept of its own: methods ask for the budget of a head
// and do not care where it came from.
#pragma once

#include <algorithm>

namespace vericache::compress {

struct HeadBudget {
  int n_slots = 0;   // to keep at most
  int n_sinks = 0;   // of them, the first slots of the sequence: always kept
  int n_recent = 0;  // of them, the last ones: always kept
};

// A share of the tokens seen. A share of tokens, not of the slots that are left: a budget then
// means the same to a method that starts from the full KV, to one that starts from a draft KV
// whose body was merged before, and to a later stage of a chain.
struct Budget {
  double keep = 1.0;  // (0, 1]
  int n_sinks = 0;
  int n_recent = 0;

  // Of one head that saw n_tokens. What is protected is kept whatever the share.
  // Requires: n_tokens >= 0. The same for every layer and head today.
  HeadBudget For(int /*layer*/, int /*head*/, int n_tokens) const {
    const int n_protected = std::min(n_tokens, n_sinks + n_recent);
    const int n_share = static_cast<int>(keep * n_tokens);
    return {.n_slots = std::max(n_protected, n_share),
            .n_sinks = std::min(n_tokens, n_sinks),
            .n_recent = n_protected - std::min(n_tokens, n_sinks)};
  }
};

}  // namespace vericache::compress
