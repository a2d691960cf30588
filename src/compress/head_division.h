// Dividing a layer's budget among its heads by their scores (AdaKV).
#pragma once

#include <span>
#include <vector>

namespace vericache::compress {

// What one head may lose: its scores that are not protected, and how many of them it would keep if
// all heads kept the same.
struct HeadChoice {
  std::span<const float> scores;
  int n_kept = 0;  // at most scores.size()
};

// How many each head keeps: a fifth of its n_kept for certain, its own best; the rest of the
// layer's sum goes to the highest scores of all heads, the lower head and slot among equals. The
// sum stays the same.
// Cost:   O(n) over the layer.
// Source: Feng et al., "Ada-KV", algorithm 1, with the safeguard of 0.2 of kvpress.
std::vector<int> DivideAmongHeads(std::span<const HeadChoice> heads);

}  // namespace vericache::compress
