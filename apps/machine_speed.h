// What this machine can do at most, measured: the ceilings that speeds are reported against.
#pragma once

#include <cstddef>

#include "base/thread_team.h"
#include "kernels/kernels.h"

namespace vericache::apps {

// Bytes per second that the team's threads read together from memory, far beyond any cache.
// Cost: some 0.3 s and 256 MiB.
double MeasureReadBandwidth(ThreadTeam& team);

// Multiply-adds per second of our own int8 matrix product (Q8_0, 64 rows) on weights that stay in
// the cache: what a pass would reach if memory, attention and barriers cost nothing. Cost: some 0.2
// s.
double MeasureMatmulRate(const kernels::KernelTable& kernels, ThreadTeam& team);

}  // namespace vericache::apps
