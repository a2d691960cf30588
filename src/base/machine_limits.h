// What this process may use of the machine: inside a container less than the machine has.
#pragma once

#include <cstdint>
#include <string>

namespace vericache {

struct MachineLimits {
  int n_cores = 1;               // of its affinity, and whole cores of its control group's quota
  uint64_t memory_bytes = 0;     // of the machine, or the limit of its control group
  uint64_t available_bytes = 0;  // of them still free, swap included; page cache counts as free
};

// Reads /proc and the control groups, versions 1 and 2, from this one up to the root: the smallest
// limit holds. What cannot be read limits nothing. `root` is put before every path.
MachineLimits ReadMachineLimits(const std::string& root = "");

}  // namespace vericache
