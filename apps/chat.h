// An interactive conversation: messages and commands in, answers out, until Ctrl-D or /exit. A turn
// reuses the KV of all earlier ones.
#pragma once

#include <optional>
#include <string>

#include "apps/interrupts.h"
#include "apps/run_options.h"
#include "base/result.h"
#include "engine/engine.h"

namespace vericache::apps {

// first: what -p and -f gave, the first message. Returns the exit code.
// Errors: those of the chat template and of the options; what goes wrong in a turn is said, and the
//         chat goes on.
Result<int> RunChat(const RunOptions& options, const std::optional<std::string>& first,
                    const std::string& model_path, engine::Engine& engine, Interrupts& interrupts);

}  // namespace vericache::apps
