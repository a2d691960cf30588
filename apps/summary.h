// What `vericache run` says on standard error at the end: speed, acceptance, KV memory.
#pragma once

#include <cstddef>
#include <string>

#include "apps/generation.h"

namespace vericache::apps {

// "151.2 MB"; powers of 1000, as memory bandwidths are given.
std::string FormatBytes(size_t bytes);

// The same in one line, for a turn of a chat.
std::string TurnLine(const Generation& generation, const decode::Request& request);

std::string Summary(const Generation& generation, const decode::Request& request);

}  // namespace vericache::apps
