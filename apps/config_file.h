// The file that holds the user's defaults: TOML, where a table sets the options of the command it
// is named after, and keys before the first table those of every command that has them.
//
//   threads = 8
//   [run]
//   model = "qwen2.5-coder-0.5b"
//   temp = 0.2
//   stop = ["\n\n", "###"]
//   [bench.acceptance]
//   draft-len = "8,16"
//
// Keys are the long names of options; what the command line gives comes first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vericache::apps {

struct Setting {
  std::string command;  // "bench acceptance"; empty: every one that has the option
  std::string key;
  std::vector<std::string> values;  // as the command line would give them
  int line = 0;
};

// $XDG_CONFIG_HOME/vericache/config.toml, or ~/.config/vericache/config.toml.
std::string ConfigPath();
// Errors: kInvalidArgument with the line, for what is no TOML or no setting.
Result<std::vector<Setting>> ParseConfig(std::string_view text);

}  // namespace vericache::apps
