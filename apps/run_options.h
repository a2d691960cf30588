// What the user of `vericache run` asks for: the options, their defaults, and the request they
// make.
//
// Names follow llama.cpp where it has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/sampling_options.h"
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
  std::optional<std::string> tools;
  bool is_raw = false;
  bool is_interactive = false;
  int n_predict = -1;
  int n_context = 0;
  int prefill_chunk = 256;
  size_t fast_kv_bytes = size_t{4} << 30;
  std::string mode = "verified";
  std::string drafter = "both";
  std::string compressor = "snapkv:keep=0.25+kivi:bits=4";
  std::string draft_len = "auto";
  bool is_compare = false;
  std::optional<std::string> json;  // "-": standard output
  std::optional<std::string> log;
  std::optional<std::string> prompt_cache;
  SamplingOptions sampling;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  int n_logprobs = -1;
};

// What is asked, and how many tokens the answer may have.
void AddPromptOptions(CLI::App& app, RunOptions& options);
void AddRunOptions(CLI::App& app, RunOptions& options);

engine::EngineOptions MakeEngineOptions(const RunOptions& options, const std::string& model_path);

// Errors: kInvalidArgument for an option that a chat has no use for.
Status CheckChat(const RunOptions& options);

// The request without its prompt. Draws the seed if none was given.
// Errors: those of MakeSampling, and kInvalidArgument for what else can be seen without a model:
// compressor, draft length.
Result<decode::Request> MakeRequest(const RunOptions& options);

}  // namespace vericache::apps
