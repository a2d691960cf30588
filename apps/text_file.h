// Text that the user names by a file: a document, a template, a grammar.
#pragma once

#include <string>

#include "base/result.h"

namespace vericache::apps {

// All of a file, or of standard input for "-".
// Errors: kNotFound, kDataLoss; kInvalidArgument for what is larger than any context could hold.
Result<std::string> ReadTextFile(const std::string& path);

}  // namespace vericache::apps
