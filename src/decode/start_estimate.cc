#include "decode/start_estimate.h"

#include <algorithm>

namespace vericache::decode {
namespace {

// Of the full KV's bytes, read by a draft row: body and exact tail of usual methods.
constexpr double kDraftKvShare = 0.25;
// A method that scores keys attends once with its window's queries. What the others do with keys
// and values is counted as so many rows.
constexpr int kLeastRows = 64;

}  // namespace

StartEstimate EstimateStart(const PlainStep& step, double prefill_row_s, int n_window) {
  const double kv_share = step.kv_bytes / (step.kv_bytes + step.weight_bytes);
  StartEstimate estimate;
  estimate.rows.draft = 1 - kv_share * (1 - kDraftKvShare);
  if (prefill_row_s > 0) estimate.rows.verified = std::min(1.0, prefill_row_s / step.seconds);
  estimate.start_s = std::max(kLeastRows, n_window) * kv_share * step.seconds;
  return estimate;
}

}  // namespace vericache::decode
