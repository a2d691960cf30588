// The list of methods, and how a spec becomes a compressor: "name:key=value,...", chained with "+",
// as in "snapkv:keep=0.25+kivi:bits=4".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compress/compressor.h"

namespace vericache::compress {

// Errors: kInvalidArgument for an unknown name or key, or a value out of range, with the list of
//         what exists.
Result<std::unique_ptr<Compressor>> MakeCompressor(std::string_view spec);

// What `--help` and the docs show, one entry per method.
struct MethodInfo {
  std::string_view name;
  std::string_view summary;
  std::string parameters;  // with their defaults: "keep=0.25,window=64"; empty if there are none
};
// User-facing methods, in listing order. The hostile test method is not among them.
std::vector<MethodInfo> ListMethods();

}  // namespace vericache::compress
