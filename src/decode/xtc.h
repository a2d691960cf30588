// XTC, "exclude top choices": now and then, the likeliest tokens are left out, except the least
// likely of those that are likely enough. What is likely goes on making sense; what is likeliest
// does not always win.
//
// Whether it acts at a position is drawn from the position's noise, not from a generator, so that
// drafts and verifies decide alike.
// Threads: pure functions. Source: p-e-w, oobabooga/text-generation-webui pull request 6335; the
// order and defaults are llama.cpp's.
#pragma once

#include <cstdint>
#include <vector>

#include "model/filters.h"

namespace vericache::decode {

struct XtcParams {
  float probability = 0.0f;  // of acting; 0: off
  float threshold = 0.1f;    // what counts as likely; above 0.5 nothing is ever left out
};

// Shapes: candidates [any], in any order, their logits finite.
// `bits`: uniform, a function of the position.
void ApplyXtc(const XtcParams& params, uint64_t bits, std::vector<model::Candidate>& candidates);

}  // namespace vericache::decode
