// A compressor that keeps every slot and rounds it to 8, 4 or 2 bits: what kivi and rotated share.
#pragma once

#include <memory>
#include <string_view>

#include "compress/compressor.h"
#include "compress/spec.h"

namespace vericache::compress {

// As the name of the traits; is_rotated: before rounding. Reads the key `bits`.
struct FewBitsKind {
  std::string_view name;
  bool is_rotated = false;
};
std::unique_ptr<Compressor> MakeFewBits(const FewBitsKind& kind, Parameters& parameters);

}  // namespace vericache::compress
