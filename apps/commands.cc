#include "apps/commands.h"

#include "apps/tell.h"

namespace vericache::apps {

int ReportError(const char* command, const Error& error) {
  if (error.code == ErrorCode::kCancelled) return kExitBrokenPipe;  // nobody is left to be told
  Tell("vericache {}: {}\n", command, error.message);
  return error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

}  // namespace vericache::apps
