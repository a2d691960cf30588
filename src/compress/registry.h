// The list of methods, and specs: "name:key=value,...", chained with "+": "snapkv:keep=0.25+kivi:bits=4".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compress/compressor.h"

namespace vericache::compress {

// Errors: kInvalidArgument for an unknown name or key, or a value out of range, with the list of what exists.
Result<std::unique_ptr<Compressor>> MakeCompressor(std::string_view spec);

// What `--help` and the docs show, one entry per method.
struct MethodInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view parameters;  // "keep=0.25 window=64"
};
// User-facing methods, in listing order. The hostile test method is not among them.
std::vector<MethodInfo> ListMethods();

}  // namespace vericache::compress
