// What a compressor costs on one prompt: how far its answer drifts from the full KV's.
//
// Two questions. What would the user read: the lossy answer against the full one, their first
// difference and edit distance. And how wrong is each step: the lossy distribution against the full
// one behind the same tokens, those of the full answer (teacher forcing). Along the lossy answer
// itself the two would part for good after one unlucky token, and methods would be measured on
// different texts; forced, each is asked the same at every step.
//
// Threads: one user at a time.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/bare_model.h"
#include "base/ids.h"
#include "base/result.h"
#include "decode/request.h"

namespace vericache::apps {

struct MethodDrift {
  std::string compressor;  // canonical spec
  // One a step of the full answer, teacher-forced; the first comes from the full KV itself.
  std::vector<double> kl;         // KL(full || lossy), nats
  std::vector<bool> is_top_same;  // the likeliest token is the same
  std::vector<TokenId> tokens;    // of the lossy answer
  std::string text;
  std::optional<int> first_difference;  // of the tokens
  int64_t edit_distance = 0;            // of the texts, in characters
  size_t kv_bytes = 0;                  // of the compressed KV, at the end

  // Figures are of the steps behind the first, which is the same by construction.
  std::span<const double> ComparedKl() const;
  double TopAgreement() const;  // share of them; 1 if there are none
};

struct Drift {
  std::vector<TokenId> tokens;  // of the full answer
  std::string text;
  decode::FinishReason reason = decode::FinishReason::kNone;
  size_t kv_bytes = 0;
  std::vector<MethodDrift> methods;  // in the order asked for
};

// request: of mode full. on_step, if given, is told how many steps are done.
// Errors: those of LoneSession.
Result<Drift> MeasureDrift(const BareModel& bare, const decode::Request& request,
                           const std::vector<std::string>& compressors,
                           const std::function<void(int n_done)>& on_step = {});

}  // namespace vericache::apps
