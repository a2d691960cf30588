// Which compressors an acceptance measurement compares: methods times kept shares times bits.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace vericache::apps {

struct AcceptanceGrid {
  std::vector<std::string> compressors;  // specs; empty: every listed method
  std::vector<double> keeps;
  std::vector<int> bits;  // 16: as the method leaves it
};

// Canonical specs, each once. A spec whose first method keeps a share and does not say which is
// taken with every share; one whose first method has bits, likewise; any that may be packed
// further, with a KIVI of each number of bits behind it.
// Errors: kInvalidArgument for a spec, share or number of bits that is none.
Result<std::vector<std::string>> ExpandGrid(const AcceptanceGrid& grid);

}  // namespace vericache::apps
