// JSON schema to a GBNF grammar whose answers are JSON of that schema, by llama-common.
// Threads: pure function.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace vericache::model {

// Errors: kInvalidArgument for what is not JSON or not a schema, with the reason; kUnsupported for
//         schemas that are too large or nested too deep.
Result<std::string> GrammarFromJsonSchema(std::string_view schema);

}  // namespace vericache::model
