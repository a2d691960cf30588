// The manual page and the completions of a shell, written from the declarations of the options
// themselves: what --help shows is what they hold.
//
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"

namespace vericache::apps {

// In roff, for man: `vericache help --man | man -l -`.
std::string ManualPage(const std::vector<CommandInfo>& commands, const std::string& version);
// For bash: `source <(vericache help --completion bash)`.
std::string BashCompletion(const std::vector<CommandInfo>& commands);

}  // namespace vericache::apps
