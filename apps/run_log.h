// The log of an answer (`vericache run --log`): everything the answer is a function of, and the
// answer. `vericache verify` computes it again from that alone.
//
// One JSON object, one key a line. A checksum over its values tells damage from a wrong answer; it
// does not protect against a forger, who can write a log of his own: what a log claims is true when
// verify says so. Version 1; a reader refuses any other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/generation.h"
#include "base/ids.h"
#include "base/result.h"
#include "decode/request.h"

namespace vericache::apps {

struct RunLog {
  std::string model;        // as the user named it
  std::string fingerprint;  // of its weights and tokens (model/fingerprint.h)
  int numerics = 0;         // revision (docs/numerics.md)
  // Prompt, sampling, stop strings, limits; mode and compressor say how the answer was made, which
  // the answer must not depend on.
  decode::Request request;
  std::vector<TokenId> tokens;
  std::string text;
  decode::FinishReason reason = decode::FinishReason::kNone;
  std::optional<uint64_t> logits_hash;  // of the full KV's logits; none for a lossy answer
};

std::string WriteRunLog(const RunLog& log);
// name: of the log in messages.
// Errors: kInvalidArgument for what is no log, kUnsupported for another version of it, kDataLoss
//         if it is cut or changed.
Result<RunLog> ReadRunLog(std::string_view text, std::string_view name);

// The request that computes the answer again over the full KV, the logged tokens being its draft.
decode::Request ReplayOf(const RunLog& log);

// What the log says against what the full KV gives.
struct Verdict {
  std::optional<int> first_difference;  // of the tokens
  bool is_same_end = false;             // reason and text agree; true if tokens differ
  bool are_logits_same = false;         // or not recorded; true if tokens differ
  bool IsIdentical() const { return !first_difference && is_same_end && are_logits_same; }
};
Verdict Judge(const RunLog& log, const Generation& replay);

}  // namespace vericache::apps
