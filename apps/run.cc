// vericache run: one prompt, one answer; with --compare, the same in all three modes; without a
// prompt, a chat.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "apps/answer.h"
#include "apps/chat.h"
#include "apps/commands.h"
#include "apps/comparison.h"
#include "apps/flags.h"
#include "apps/generation.h"
#include "apps/interrupts.h"
#include "apps/json_report.h"
#include "apps/model_path.h"
#include "apps/output_file.h"
#include "apps/progress.h"
#include "apps/prompt.h"
#include "apps/prompt_cache.h"
#include "apps/run_log.h"
#include "apps/run_options.h"
#include "apps/summary.h"
#include "apps/tell.h"
#include "apps/tool_calls.h"
#include "compress/registry.h"
#include "kernels/numerics.h"

namespace vericache::apps {
namespace {

// Everything a run needs before it can generate.
struct Setup {
  std::unique_ptr<engine::Engine> engine;
  decode::Request request;
  RunFacts facts;
  std::vector<TokenId> cached;  // tokens of the prompt cache
  std::string user_text;
  std::string model_path;
};

Result<Setup> Prepare(const RunOptions& options, const std::string& user_text,
                      decode::Request request) {
  const auto model_path = ResolveModelPath(options.machine.model);
  if (!model_path) return tl::unexpected(model_path.error());
  auto engine = engine::Engine::Create(MakeEngineOptions(options, *model_path));
  if (!engine) return tl::unexpected(engine.error());
  auto prompt = PromptTokens(options, user_text, *model_path, (*engine)->GetTokenizer());
  if (!prompt) return tl::unexpected(prompt.error());
  request.prompt = std::move(*prompt);
  const auto compressor = compress::MakeCompressor(request.compressor);
  if (!compressor) return tl::unexpected(compressor.error());
  RunFacts facts{.model = options.machine.model,
                 .compressor = (*compressor)->Spec(),
                 .isa = std::string((*engine)->IsaName()),
                 .n_threads = (*engine)->ThreadCount()};
  std::vector<TokenId> cached;
  if (options.prompt_cache) {
    auto kept = ReadPromptCache(**engine, *options.prompt_cache);
    if (!kept) return tl::unexpected(kept.error());
    request.prefix = std::move(*kept);
    request.keep_kv = true;
    if (request.prefix) cached = request.prefix->tokens;
  }
  return Setup{std::move(*engine), std::move(request), std::move(facts),
               std::move(cached),  user_text,          *model_path};
}

// The same request in another mode, unseen but for the progress bar.
Result<Generation> GenerateQuietly(Setup& setup, decode::Mode mode, const char* name,
                                   Interrupts& interrupts) {
  decode::Request request = setup.request;
  request.mode = mode;
  request.keep_kv = false;
  PrefillProgress progress(name, static_cast<int>(request.prompt.size()),
                           isatty(STDERR_FILENO) == 1);
  const Watcher watcher{.on_prefill = [&progress](int n_done) { progress.Show(n_done); },
                        .on_tokens =
                            [&progress](const engine::Event&) {
                              progress.Clear();
                              return true;
                            }};
  return Generate(*setup.engine, std::move(request), watcher, interrupts);
}

Result<Comparison> Compare(Setup& setup, const Generation& verified, Interrupts& interrupts) {
  Comparison comparison;
  comparison.verified = verified;
  auto full = GenerateQuietly(setup, decode::Mode::kFull, "full", interrupts);
  if (!full) return tl::unexpected(full.error());
  comparison.full = std::move(*full);
  if (interrupts.WasInterrupted()) return comparison;
  auto lossy = GenerateQuietly(setup, decode::Mode::kLossy, "lossy", interrupts);
  if (!lossy) return tl::unexpected(lossy.error());
  comparison.lossy = std::move(*lossy);
  return comparison;
}

Status WriteLog(const std::string& path, const Setup& setup, const Generation& generation) {
  RunLog log{.model = setup.facts.model,
             .fingerprint = setup.engine->GetModel().Fingerprint(),
             .numerics = kernels::kNumericsRevision,
             .request = setup.request,
             .tokens = generation.tokens,
             .text = generation.text,
             .reason = generation.reason,
             .logits_hash = generation.stats.logits_hash};
  if (log.request.mode == decode::Mode::kLossy) log.logits_hash.reset();
  return ReplaceFile(path, WriteRunLog(log));
}

// With --tools: the calls in the answer, shown.
std::optional<model::ParsedAnswer> ShowToolCalls(const RunOptions& options, const Setup& setup,
                                                 const Generation& generation) {
  if (!options.tools) return std::nullopt;
  auto parsed = PartsOrAll(ParseAnswer(options, setup.user_text, setup.model_path,
                                       setup.engine->GetTokenizer(), generation.text),
                           generation.text);
  ShowCalls(parsed.tool_calls);
  return parsed;
}

// Generates, shows, compares, reports. Returns the exit code.
Result<int> Perform(const RunOptions& options, Setup& setup, Interrupts& interrupts) {
  const bool is_quiet = options.json == "-";
  Answer answer(setup.request.prompt, setup.engine->GetTokenizer(), is_quiet);
  decode::Request request = setup.request;
  setup.request.prefix.reset();  // the comparison computes everything itself
  auto generation = Generate(*setup.engine, std::move(request), answer.GetWatcher(), interrupts);
  answer.Finish();
  if (!generation) return tl::unexpected(generation.error());
  Tell("\n{}", Summary(*generation, setup.request));
  const auto parsed = ShowToolCalls(options, setup, *generation);
  const Status logged =
      options.log ? WriteLog(*options.log, setup, *generation) : Status();  // whatever follows
  Status cached;
  if (options.prompt_cache) {
    cached = WritePromptCache(*setup.engine, *options.prompt_cache, setup.request, *generation,
                              setup.cached);
    generation->kept.reset();  // the comparison may need its memory
  }

  std::optional<Comparison> comparison;
  if (options.is_compare && !interrupts.WasInterrupted() && !answer.HasFailed()) {
    auto compared = Compare(setup, *generation, interrupts);
    if (!compared) return tl::unexpected(compared.error());
    if (!interrupts.WasInterrupted()) {  // half a comparison says nothing
      Tell("\n{}", ComparisonTable(*compared));
      comparison = std::move(*compared);
    }
  }
  if (options.json) {
    const RunReport report{setup.facts, setup.request, *generation,
                           comparison ? &*comparison : nullptr, parsed ? &*parsed : nullptr};
    VC_RETURN_IF_ERROR(WriteReport(*options.json, JsonReport(report)));
  }
  VC_RETURN_IF_ERROR(logged);
  VC_RETURN_IF_ERROR(cached);
  if (interrupts.WasInterrupted()) return kExitInterrupted;
  VC_RETURN_IF_ERROR(answer.GetStatus());
  return 0;
}

// Asked for, or nobody has asked anything yet and somebody can.
bool IsChat(const RunOptions& options) {
  return options.is_interactive || (!options.prompt && !options.file && isatty(STDIN_FILENO) == 1);
}

Result<int> StartChat(const RunOptions& options) {
  VC_RETURN_IF_ERROR(CheckChat(options));
  std::optional<std::string> first;
  if (options.prompt || options.file) {
    auto text = ReadUserText(options);
    if (!text) return tl::unexpected(text.error());
    first = std::move(*text);
  }
  Interrupts interrupts;  // before the engine's threads, which inherit the blocked signal
  const auto model_path = ResolveModelPath(options.machine.model);
  if (!model_path) return tl::unexpected(model_path.error());
  auto engine = engine::Engine::Create(MakeEngineOptions(options, *model_path));
  if (!engine) return tl::unexpected(engine.error());
  return RunChat(options, first, *model_path, **engine, interrupts);
}

Result<int> RunChecked(const RunOptions& options) {
  auto request = MakeRequest(options);
  if (!request) return tl::unexpected(request.error());
  request->hash_logits = options.is_compare || options.log.has_value();
  if (options.json && *options.json != "-") VC_RETURN_IF_ERROR(CheckWritable(*options.json));
  if (options.prompt_cache) VC_RETURN_IF_ERROR(CheckReplaceable(*options.prompt_cache));
  if (options.log) VC_RETURN_IF_ERROR(CheckReplaceable(*options.log));
  if (IsChat(options)) return StartChat(options);
  const auto user_text = ReadUserText(options);
  if (!user_text) return tl::unexpected(user_text.error());
  Interrupts interrupts;  // before the engine's threads, which inherit the blocked signal
  auto setup = Prepare(options, *user_text, std::move(*request));
  if (!setup) return tl::unexpected(setup.error());
  return Perform(options, *setup, interrupts);
}

int Run(const RunOptions& options) {
  const auto exit_code = RunChecked(options);
  return exit_code ? *exit_code : ReportError("run", exit_code.error());
}

}  // namespace

void AddRun(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App& command = AddCommand(app, "run", "answers a prompt", [options, &chosen] {
    chosen = [options] { return Run(*options); };
  });
  AddRunOptions(command, *options);
  SetFooter(
      command,
      "Without a prompt, on a terminal or with -i, a chat: a turn reuses the KV of all earlier "
      "ones, "
      "and\n/help lists its commands. For example:\n"
      "  vericache run -p \"Why is the sky blue?\"\n"
      "  vericache run -f LICENSE -p \"What must I do when I redistribute this?\"\n"
      "  git diff | vericache run\n"
      "Text goes to standard output, figures to standard error. Exit codes: 0 done, 1 failed, 2 "
      "wrong call,\n"
      "130 stopped by Ctrl-C. An answer is reproduced by its seed.");
}

}  // namespace vericache::apps
