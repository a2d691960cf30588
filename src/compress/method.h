// What a method's file offers to the registry.
#pragma once

#include <memory>
#include <string_view>

#include "compress/compressor.h"
#include "compress/spec.h"

namespace vericache::compress {

struct Method {
  std::string_view name;
  std::string_view summary;
  // Reads the parameters; the caller checks them afterwards and drops the result if they are bad.
  std::unique_ptr<Compressor> (*make)(Parameters& parameters);
  bool is_listed = true;  // false: reachable by spec, for tests
};

}  // namespace vericache::compress
