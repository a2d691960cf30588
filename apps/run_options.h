// What the user of `vericache run` asks for: the options, their defaults, and the request they
// make.
//
// Names follow llama.cpp where it has them, and so do the sampling defaults: temperature 0.8, top-k
// 40, top-p 0.95, min-p 0.05, a random seed that is reported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "decode/request.h"
#include "engine/engine.h"

namespace CLI {
class App;
}

namespace vericache::apps {

// How every command that runs a model is told which, and on what.
struct MachineOptions {
  std::string model = "smollm2-135m";  // a path, or a name (apps/model_path.h)
  int n_threads = 0;                   // 0: all cores
  std::string isa = "auto";
};
void AddMachineOptions(CLI::App& app, MachineOptions& options);

struct RunOptions {
  MachineOptions machine;
  std::optional<std::string> prompt;
  std::optional<std::string> file;  // "-": standard input
  std::optional<std::string> system_prompt;
  std::optional<std::string> chat_template;
  bool is_raw = false;
  int n_predict = -1;
  int n_context = 0;
  int prefill_chunk = 256;
  size_t fast_kv_bytes = size_t{4} << 30;
  std::string mode = "verified";
  std::string drafter = "kv";
  std::string compressor = "snapkv:keep=0.5+kivi:bits=4";
  std::string draft_len = "auto";
  bool is_compare = false;
  std::optional<std::string> json;  // "-": standard output
  std::optional<std::string> prompt_cache;
  float temperature = 0.8f;
  int top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.05f;
  std::string seed = "-1";
  float repeat_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::vector<std::string> logit_bias;  // "TOKEN+BIAS" or "TOKEN-BIAS"
  std::vector<std::string> stop;
  bool ignore_eos = false;
  int n_logprobs = -1;
};

void AddRunOptions(CLI::App& app, RunOptions& options);

engine::EngineOptions MakeEngineOptions(const RunOptions& options, const std::string& model_path);

// The request without its prompt. Draws the seed if none was given.
// Errors: kInvalidArgument for what can be seen without a model: compressor, draft length, seed,
// bias.
Result<decode::Request> MakeRequest(const RunOptions& options);

}  // namespace vericache::apps
