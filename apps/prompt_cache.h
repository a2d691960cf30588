// The full KV of a prompt in a file, so that the next run of the same model need not prefill it.
#pragma once

#include <memory>
#include <string>

#include "apps/generation.h"
#include "base/result.h"
#include "engine/engine.h"

namespace vericache::apps {

// The KV in the file; null if there is none yet. A damaged one, or one too large for the budget, is
// as good as none: the user is told, and the prompt is prefilled anew (I9).
// Errors: kInvalidArgument for a file that we did not write, or wrote for another model.
Result<std::shared_ptr<const decode::KeptKv>> ReadPromptCache(engine::Engine& engine,
                                                              const std::string& path);

// Writes the KV of the prompt, as far as it was prefilled, unless the file has it already.
// cached: what ReadPromptCache gave, as tokens. Errors: kNotFound with the reason.
Status WritePromptCache(const engine::Engine& engine, const std::string& path,
                        const decode::Request& request, const Generation& generation,
                        const std::vector<TokenId>& cached);

}  // namespace vericache::apps
