// vericache verify: computes a logged answer again with the full KV, and says whether it is that.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "apps/commands.h"
#include "apps/flags.h"
#include "apps/generation.h"
#include "apps/interrupts.h"
#include "apps/model_path.h"
#include "apps/output_file.h"
#include "apps/progress.h"
#include "apps/request_names.h"
#include "apps/run_log.h"
#include "apps/run_options.h"
#include "apps/text_file.h"
#include "kernels/numerics.h"

namespace vericache::apps {
namespace {

struct VerifyOptions {
  std::string log;
  MachineOptions machine{.model = ""};  // the one that the log names
  size_t fast_kv_bytes = size_t{4} << 30;
};

Result<RunLog> ReadLog(const std::string& path) {
  const auto text = ReadTextFile(path);
  VC_RETURN_IF_ERROR(text);
  auto log = ReadRunLog(*text, path == "-" ? "standard input" : "'" + path + "'");
  VC_RETURN_IF_ERROR(log);
  if (log->numerics == kernels::kNumericsRevision) return log;
  return MakeError(ErrorCode::kUnsupported,
                   "'{}' was computed with numerics revision {}, this build computes with {}: use "
                   "a build of that revision",
                   path, log->numerics, kernels::kNumericsRevision);
}

Result<std::unique_ptr<engine::Engine>> LoadModelOf(const VerifyOptions& options,
                                                    const RunLog& log) {
  const std::string& name = options.machine.model.empty() ? log.model : options.machine.model;
  const auto path = ResolveModelPath(name);
  VC_RETURN_IF_ERROR(path);
  auto engine = engine::Engine::Create({.model_path = *path,
                                        .n_threads = options.machine.n_threads,
                                        .isa = options.machine.isa,
                                        .fast_kv_bytes = options.fast_kv_bytes,
                                        .max_sessions = 1});
  VC_RETURN_IF_ERROR(engine);
  const std::string& fingerprint = (*engine)->GetModel().Fingerprint();
  if (fingerprint == log.fingerprint) return engine;
  return MakeError(ErrorCode::kInvalidArgument,
                   "'{}' is another model than the log's: its fingerprint begins with {}, the "
                   "log's with {}; give that model with -m",
                   name, fingerprint.substr(0, 12), log.fingerprint.substr(0, 12));
}

// Ends at the first pass that shows a difference: what follows it is another answer.
Result<Generation> RunReplay(engine::Engine& engine, const RunLog& log, Interrupts& interrupts) {
  PrefillProgress progress("", static_cast<int>(log.request.prompt.size()),
                           isatty(STDERR_FILENO) == 1);
  size_t n_done = 0;
  const Watcher watcher{.on_prefill = [&progress](int n_prefilled) { progress.Show(n_prefilled); },
                        .on_tokens =
                            [&](const engine::Event& event) {
                              progress.Clear();
                              for (const TokenId token : event.tokens) {
                                if (n_done >= log.tokens.size() || log.tokens[n_done] != token)
                                  return false;
                                ++n_done;
                              }
                              return true;
                            }};
  return Generate(engine, ReplayOf(log), watcher, interrupts);
}

std::string TokenText(const std::vector<TokenId>& tokens, size_t i, decode::FinishReason reason,
                      const model::Tokenizer& tokenizer) {
  if (i >= tokens.size()) return fmt::format("the end ({})", FinishReasonName(reason));
  return fmt::format("{} {:?}", tokens[i].value, tokenizer.Piece(tokens[i]));
}

std::string Sentence(const RunLog& log, const Generation& replay, const Verdict& verdict,
                     const model::Tokenizer& tokenizer) {
  if (verdict.first_difference) {
    const auto i = static_cast<size_t>(*verdict.first_difference);
    return fmt::format("differs at token {} of {}: the log has {}, the full KV gives {}{}\n", i,
                       log.tokens.size(), TokenText(log.tokens, i, log.reason, tokenizer),
                       TokenText(replay.tokens, i, replay.reason, tokenizer),
                       log.request.mode == decode::Mode::kLossy
                           ? "; the answer was made in mode lossy, which promises nothing else"
                           : "");
  }
  if (!verdict.is_same_end) {
    return fmt::format(
        "differs in its end: all {} tokens are the full KV's, but not the text or that it was "
        "ended by {}\n",
        log.tokens.size(), FinishReasonName(log.reason));
  }
  if (!verdict.are_logits_same) {
    return fmt::format(
        "differs in logits: all {} tokens are the full KV's, but not the bits they were chosen "
        "from; please report this with the output of vericache --version\n",
        log.tokens.size());
  }
  return fmt::format(
      "identical: {} tokens{}, ended by {}; computed again in {:.2f} s: the prompt, then {} "
      "passes over drafted tokens\n",
      log.tokens.size(), log.logits_hash ? " and the bits of their logits" : "",
      FinishReasonName(log.reason), replay.stats.prefill_s + replay.stats.decode_s,
      replay.stats.rounds);
}

Result<int> VerifyLog(const VerifyOptions& options) {
  const auto log = ReadLog(options.log);
  VC_RETURN_IF_ERROR(log);
  Interrupts interrupts;  // before the engine's threads, which inherit the blocked signal
  const auto engine = LoadModelOf(options, *log);
  VC_RETURN_IF_ERROR(engine);
  const auto replay = RunReplay(**engine, *log, interrupts);
  VC_RETURN_IF_ERROR(replay);
  if (interrupts.WasInterrupted()) return kExitInterrupted;
  const Verdict verdict = Judge(*log, *replay);
  VC_RETURN_IF_ERROR(Print(stdout, Sentence(*log, *replay, verdict, (*engine)->GetTokenizer())));
  return verdict.IsIdentical() ? 0 : kExitFailure;
}

// As cmp: 1 says that they differ, so whatever kept us from knowing is 2.
int Verify(const VerifyOptions& options) {
  const auto exit_code = VerifyLog(options);
  if (exit_code) return *exit_code;
  const int reported = ReportError("verify", exit_code.error());
  return reported == kExitFailure ? kExitUsage : reported;
}

}  // namespace

void AddVerify(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App& command =
      AddCommand(app, "verify", "checks a logged answer with the full KV",
                 [options, &chosen] { chosen = [options] { return Verify(*options); }; });
  AddRequired(command, "LOG", "a file that run --log wrote; - reads standard input", options->log);
  AddMachineOptions(command, options->machine);
  AddBytes(command, {"--fast-kv", "BYTES", "memory the full KV may take"}, options->fast_kv_bytes);
  SetFooter(command,
            "Computes the answer again from the log's prompt, parameters and seed, in a few wide\n"
            "passes, on any machine. Without -m it takes the model that the log names.\n"
            "Exit codes: 0 identical, 1 it differs, 2 it could not be checked.");
}

}  // namespace vericache::apps
