// How the next token is chosen, as the user says it.
//
// Names, order and defaults are llama.cpp's: temperature 0.8, top-k 40, top-p 0.95, min-p 0.05, a
// random seed that is reported; all else off.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "decode/request.h"

namespace CLI {
class App;
}

namespace vericache::apps {

struct SamplingOptions {
  float temperature = 0.8f;
  int top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.05f;
  float typical_p = 1.0f;
  float top_n_sigma = -1.0f;
  float xtc_probability = 0.0f;
  float xtc_threshold = 0.1f;
  std::string seed = "-1";
  float repeat_penalty = 1.0f;
  int repeat_last_n = 64;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  float dry_multiplier = 0.0f;
  float dry_base = 1.75f;
  int dry_allowed_length = 2;
  int dry_last_n = 64;
  std::vector<std::string> dry_breakers;  // empty: the usual ones; "none": none
  std::vector<std::string> logit_bias;    // "TOKEN+BIAS" or "TOKEN-BIAS"
  std::optional<std::string> grammar;
  std::optional<std::string> grammar_file;
  std::optional<std::string> json_schema;
  std::optional<std::string> json_schema_file;
  int mirostat = 0;
};

void AddSamplingOptions(CLI::App& app, SamplingOptions& options);

// Draws the seed if none was given; reads the files named.
// Errors: kInvalidArgument for seed, bias, schema, mirostat, and options that exclude each other;
//         those of files.
Result<decode::SamplingParams> MakeSampling(const SamplingOptions& options);

}  // namespace vericache::apps
