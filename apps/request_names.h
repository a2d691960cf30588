// What requests are called by users: on the command line, in summaries, JSON and logs.
#pragma once

#include <string_view>

#include "base/result.h"
#include "decode/request.h"

namespace vericache::apps {

std::string_view ModeName(decode::Mode mode);
std::string_view DrafterName(decode::DrafterKind drafter);
// "eos", "stop", "length", ...
std::string_view FinishReasonName(decode::FinishReason reason);

// Errors: kInvalidArgument with the names that there are.
Result<decode::Mode> ParseMode(std::string_view name);
Result<decode::FinishReason> ParseFinishReason(std::string_view name);

}  // namespace vericache::apps
