// The JSON object of `vericache run --json`. Its keys are stable: tests, benchmarks and users rely
// on them.
#pragma once

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

// One line of JSON, ending in a newline.
std::string JsonReport(const RunReport& report);

// Errors: kNotFound with the reason if the file cannot be written.
Status CheckWritable(const std::string& path);
// Errors: as above; kCancelled if standard output is a pipe that nobody reads any more.
Status WriteReport(const std::string& path_or_dash, const std::string& json);

}  // namespace vericache::apps
