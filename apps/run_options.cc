#include "apps/run_options.h"

#include <fmt/format.h>

#include "apps/flags.h"
#include "apps/request_names.h"
#include "compress/registry.h"

namespace vericache::apps {
namespace {

constexpr int kTokensMax = 1 << 24;  // longer than any context; keeps sums of counts in an int
constexpr int kThreadsMax = 1024;
constexpr int kPrefillChunkMax = 4096;  // rows of one pass: activations of one are some KB each

void AddEngineOptions(CLI::App& app, RunOptions& options) {
  AddInt(app, {"-c,--ctx-size", "N", "context in tokens; 0 as trained"}, {0, kTokensMax},
         options.n_context);
  AddInt(app, {"--prefill-chunk", "N", "prompt tokens in one pass"}, {1, kPrefillChunkMax},
         options.prefill_chunk);
  AddBytes(app, {"--fast-kv", "BYTES", "memory the full KV may take"}, options.fast_kv_bytes);
  AddOptionalText(app,
                  {"--prompt-cache", "FILE",
                   "keeps the prompt's full KV in a file: the next run of the same model prefills "
                   "only what differs"},
                  options.prompt_cache);
}

std::string CompressorHelp() {
  std::string help = "how the draft KV is made:\n";
  for (const compress::MethodInfo& method : compress::ListMethods()) {
    help += fmt::format("{}: {} [{}]\n", method.name, method.summary, method.parameters);
  }
  return help + "NAME:KEY=VALUE,..., chained with +";
}

void AddModeOptions(CLI::App& app, RunOptions& options) {
  AddChoice(app,
            {"--mode", "MODE", "full, lossy (compressed KV only: the text may differ) or verified"},
            {"full", "lossy", "verified"}, options.mode);
  AddChoice(app,
            {"--drafter", "NAME",
             "who proposes what mode verified verifies: kv (the model over its compressed "
             "KV), ngram (what followed the same words before: for edits and quotes) or both (kv "
             "runs what ngram proposes)"},
            {"kv", "ngram", "both"}, options.drafter);
  AddText(app, {"--compressor", "SPEC", CompressorHelp()}, options.compressor);
  AddText(app, {"--draft-len", "N|auto", "tokens drafted before each verify, at most"},
          options.draft_len);
  AddSwitch(app, "--compare", "decodes the same request in all three modes and compares",
            options.is_compare);
  AddOptionalText(app,
                  {"--json", "FILE",
                   "writes one JSON object; - to standard output, which then holds nothing else"},
                  options.json);
  AddOptionalText(app,
                  {"--log", "FILE",
                   "writes what was asked and answered, for vericache verify to compute again"},
                  options.log);
}

void AddAnswerOptions(CLI::App& app, RunOptions& options) {
  AddRepeated(app, {"--stop", "TEXT", "ends the answer before this text; repeatable"},
              options.stop);
  AddSwitch(app, "--ignore-eos", "goes on past the end of the answer", options.ignore_eos);
  AddInt(
      app,
      {"--logprobs", "N", "log probabilities in the JSON: each token and the N likeliest; -1 none"},
      {-1, decode::kMaxLogprobs}, options.n_logprobs);
}

Result<std::optional<int>> ParseDraftLen(const std::string& text) {
  if (text == "auto") return std::optional<int>{};
  const auto length = ParseInteger(text);
  if (!length || *length < 0 || *length > decode::kMaxDraftLen) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--draft-len takes auto or a whole number from 0 to {}, not '{}'",
                     decode::kMaxDraftLen, text);
  }
  return std::optional<int>{static_cast<int>(*length)};
}

Status CheckConsistent(const RunOptions& options) {
  if (options.is_compare && options.mode != "verified") {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--compare decodes in all three modes; leave out --mode {}", options.mode);
  }
  if (options.is_raw && (options.system_prompt || options.chat_template || options.tools)) {
    return MakeError(ErrorCode::kInvalidArgument, "--raw uses no chat template; leave out {}",
                     options.system_prompt   ? "--system-prompt"
                     : options.chat_template ? "--chat-template"
                                             : "--tools");
  }
  if (options.n_logprobs >= 0 && !options.json) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--logprobs {} shows in the JSON only; add --json FILE", options.n_logprobs);
  }
  if (options.log == "-") {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--log takes a file, not -; the answer has standard output");
  }
  if (options.stop.size() > decode::kMaxStopStrings) {
    return MakeError(ErrorCode::kInvalidArgument, "--stop was given {} times, but {} is the most",
                     options.stop.size(), decode::kMaxStopStrings);
  }
  for (const std::string& stop : options.stop) {
    if (stop.empty())
      return MakeError(ErrorCode::kInvalidArgument, "--stop takes a text that is not empty");
  }
  return {};
}

decode::DrafterKind ParseDrafter(const std::string& name) {
  if (name == "ngram") return decode::DrafterKind::kNgram;
  return name == "both" ? decode::DrafterKind::kBoth : decode::DrafterKind::kKv;
}

}  // namespace

void AddMachineOptions(CLI::App& app, MachineOptions& options) {
  AddText(app,
          {"-m,--model", "MODEL",
           "a GGUF file, or smollm2-135m, qwen2.5-coder-0.5b, qwen2.5-coder-1.5b"},
          options.model);
  AddInt(app, {"-t,--threads", "N", "threads; 0 takes all cores"}, {0, kThreadsMax},
         options.n_threads);
  AddChoice(app, {"--isa", "PATH", "kernel path: auto, ref, avx2, avx512, avx512vnni"},
            {"auto", "ref", "avx2", "avx512", "avx512vnni"}, options.isa);
}

void AddPromptOptions(CLI::App& app, RunOptions& options) {
  AddOptionalText(app, {"-p,--prompt", "TEXT", "the question, or with --raw the prompt as it is"},
                  options.prompt);
  AddOptionalText(
      app, {"-f,--file", "FILE", "a document, placed before the question; - reads standard input"},
      options.file);
  AddOptionalText(app, {"--system-prompt", "TEXT", "the system message"}, options.system_prompt);
  AddOptionalText(app,
                  {"--chat-template", "JINJA",
                   "a chat template, or a file that holds one, in place of the model's own"},
                  options.chat_template);
  AddSwitch(app, "--raw", "no chat template: the text is the prompt", options.is_raw);
  AddInt(app, {"-n,--predict", "N", "tokens to generate; -1 until the end, 0 prefill only"},
         {-1, kTokensMax}, options.n_predict);
}

void AddRunOptions(CLI::App& app, RunOptions& options) {
  AddMachineOptions(app, options.machine);
  AddPromptOptions(app, options);
  AddOptionalText(app,
                  {"--tools", "FILE",
                   "functions that the model may call, a JSON array as OpenAI's interface has it; "
                   "calls are shown behind the answer and in the JSON; in a chat, /result answers "
                   "them"},
                  options.tools);
  AddSwitch(app, "-i,--interactive",
            "a chat; -p and -f give its first message. The default on a terminal without either",
            options.is_interactive);
  AddModeOptions(app, options);
  AddSamplingOptions(app, options.sampling);
  AddAnswerOptions(app, options);
  AddEngineOptions(app, options);
}

engine::EngineOptions MakeEngineOptions(const RunOptions& options, const std::string& model_path) {
  return {.model_path = model_path,
          .n_threads = options.machine.n_threads,
          .isa = options.machine.isa,
          .fast_kv_bytes = options.fast_kv_bytes,
          .n_context = options.n_context,
          .prefill_chunk = options.prefill_chunk,
          .max_sessions = 1};
}

Status CheckChat(const RunOptions& options) {
  const char* useless = options.is_raw           ? "--raw"
                        : options.is_compare     ? "--compare"
                        : options.json           ? "--json"
                        : options.log            ? "--log"
                        : options.prompt_cache   ? "--prompt-cache"
                        : options.n_predict == 0 ? "-n 0"
                                                 : nullptr;
  if (useless == nullptr) return {};
  return MakeError(ErrorCode::kInvalidArgument,
                   "a chat has no use for {}; leave it out, or give a prompt with -p or -f and no "
                   "-i",
                   useless);
}

Result<decode::Request> MakeRequest(const RunOptions& options) {
  VC_RETURN_IF_ERROR(CheckConsistent(options));
  VC_RETURN_IF_ERROR(compress::MakeCompressor(options.compressor));
  const auto draft_len = ParseDraftLen(options.draft_len);
  VC_RETURN_IF_ERROR(draft_len);
  const auto sampling = MakeSampling(options.sampling);
  VC_RETURN_IF_ERROR(sampling);
  const auto mode = ParseMode(options.mode);
  VC_RETURN_IF_ERROR(mode);
  decode::Request request;
  request.mode = *mode;
  request.drafter = ParseDrafter(options.drafter);
  request.compressor = options.compressor;
  request.draft_len = *draft_len;
  request.sampling = *sampling;
  request.max_tokens = options.n_predict;
  request.stop = options.stop;
  request.ignore_eos = options.ignore_eos;
  request.n_logprobs = options.n_logprobs;
  return request;
}

}  // namespace vericache::apps
