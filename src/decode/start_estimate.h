// What drafts over a compressed KV will cost, before anything is compressed: from the bytes that a
// plain step reads, and the time that rows of a prefill took.
#pragma once

#include "decode/draft_length.h"

namespace vericache::decode {

// A plain step, as far as one of the sessions that ride on it is concerned: time and bytes of the
// same passes.
struct PlainStep {
  double seconds = 0;
  double weight_bytes = 0;  // read for all sessions, divided by their rows
  double kv_bytes = 0;
};

struct StartEstimate {
  RowCosts rows;
  double start_s = 0;  // to compress
};

// prefill_row_s: seconds per row of a wide pass over about the same KV; 0: not known.
// n_window: tokens whose queries the method reads (compress::Traits); 0: none.
// Requires: step.seconds > 0; some bytes.
StartEstimate EstimateStart(const PlainStep& step, double prefill_row_s, int n_window);

}  // namespace vericache::decode
