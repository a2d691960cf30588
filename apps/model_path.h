// Finds the model a user named: a path, or the name of one that `./dev model NAME` fetches.
#pragma once

#include <string>

#include "base/result.h"

namespace vericache::apps {

// A name without a slash that is one of the known ones and no file here is looked up in
// ${VERICACHE_CACHE:-~/.cache/vericache}/models/NAME.gguf.
// Errors: kNotFound, saying how to get the model.
Result<std::string> ResolveModelPath(const std::string& path_or_name);

}  // namespace vericache::apps
