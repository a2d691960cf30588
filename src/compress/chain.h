// Several methods in a row: each compresses what the one before left.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "compress/compressor.h"

namespace vericache::compress {

// Errors: kInvalidArgument if a stage cannot follow the one before.
Result<std::unique_ptr<Compressor>> MakeChain(std::vector<std::unique_ptr<Compressor>> stages);

}  // namespace vericache::compress
