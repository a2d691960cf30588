// The JSON object of `vericache run --json`. Its keys are stable: tests, benchmarks and users rely
// on them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "apps/comparison.h"
#include "apps/generation.h"
#include "apps/run_options.h"
#include "base/result.h"
#include "model/chat_template.h"

namespace vericache::apps {

// What of a run does not come from the generation.
struct RunFacts {
  std::string model;       // the file
  std::string compressor;  // canonical spec
  std::string isa;
  int n_threads = 0;
};

struct RunReport {
  const RunFacts& facts;
  const decode::Request& request;
  const Generation& generation;
  const Comparison* comparison = nullptr;       // with --compare
  const model::ParsedAnswer* parsed = nullptr;  // with --tools
};

// The text of any JSON. Bytes that are no UTF-8, as names of files may hold, are replaced: dump()
// would throw. indent: as dump() takes it.
std::string DumpJson(const nlohmann::ordered_json& json, int indent = -1);

// One line of JSON, ending in a newline.
std::string JsonReport(const RunReport& report);

// Errors: kNotFound with the reason if the file cannot be written.
Status CheckWritable(const std::string& path);
// Errors: those of WriteError.
Status WriteReport(const std::string& path_or_dash, const std::string& json);

}  // namespace vericache::apps
