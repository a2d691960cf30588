#include "decode/start_estimate.h"

#include <algorithm>

namespace vericache::decode {
namespace {

// Of the full KV's bytes, read by a draft row: body and exact tail of usual methods.
constexpr double kDraftKvShare = 0.25;
// A method that scores keys attends once with its window's queries, and packs what it keeps.
constexpr double kScoredRows = 64;

}  // namespace

StartEstimate EstimateStart(const PlainStep& step, double prefill_row_s) {
  const double kv_share = step.kv_bytes / (step.kv_bytes + step.weight_bytes);
  StartEstimate estimate;
  estimate.rows.draft = 1 - kv_share * (1 - kDraftKvShare);
  if (prefill_row_s > 0) estimate.rows.verified = std::min(1.0, prefill_row_s / step.seconds);
  estimate.start_s = kScoredRows * kv_share * step.seconds;
  return estimate;
}

}  // namespace vericache::decode
