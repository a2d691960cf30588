// vericache drift: what compressors cost on a prompt, in text and in distributions.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "apps/commands.h"
#include "apps/drift_run.h"
#include "apps/flags.h"
#include "apps/json_report.h"
#include "apps/measures.h"
#include "apps/output_file.h"
#include "apps/progress.h"
#include "apps/prompt.h"
#include "apps/request_names.h"
#include "apps/run_options.h"
#include "apps/sampling_json.h"
#include "apps/summary.h"
#include "compress/registry.h"
#include "kernels/numerics.h"

namespace vericache::apps {
namespace {

using Json = nlohmann::ordered_json;

struct DriftOptions {
  RunOptions run;
  std::vector<std::string> compressors;
};

double Mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The smallest value that a share of the values does not pass.
double Quantile(std::span<const double> given, double share) {
  if (given.empty()) return 0;
  std::vector<double> values(given.begin(), given.end());
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  return values[rank];
}

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

int64_t LongerText(const Drift& drift, const MethodDrift& method) {
  return std::max(CharacterCount(drift.text), CharacterCount(method.text));
}

std::string Table(const Drift& drift) {
  size_t width = 10;
  for (const MethodDrift& method : drift.methods) {
    width = std::max(width, method.compressor.size());
  }
  std::string table =
      fmt::format("{:<{}} {:>6} {:>9} {:>9} {:>9} {:>7} {:>10} {:>13}\n", "compressor", width, "KV",
                  "KL mean", "90 %", "most", "top-1", "first diff", "edit distance");
  for (const MethodDrift& method : drift.methods) {
    table += fmt::format(
        "{:<{}} {:>4.0f} % {:>9.5f} {:>9.5f} {:>9.5f} {:>5.1f} % {:>10} {:>13}\n",
        method.compressor, width,
        100 * Share(static_cast<int64_t>(method.kv_bytes), static_cast<int64_t>(drift.kv_bytes)),
        Mean(method.ComparedKl()), Quantile(method.ComparedKl(), 0.9),
        Quantile(method.ComparedKl(), 1), 100 * method.TopAgreement(),
        method.first_difference ? fmt::format("token {}", *method.first_difference) : "none",
        fmt::format("{} ({:.0f} %)", method.edit_distance,
                    100 * Share(method.edit_distance, LongerText(drift, method))));
  }
  return table;
}

Json IdsOf(const std::vector<TokenId>& tokens) {
  Json ids = Json::array();
  for (const TokenId token : tokens) ids.push_back(token.value);
  return ids;
}

Json MethodObject(const Drift& drift, const MethodDrift& method) {
  return {{"compressor", method.compressor},
          {"kv_bytes", method.kv_bytes},
          {"kl_mean", Mean(method.ComparedKl())},
          {"kl_p90", Quantile(method.ComparedKl(), 0.9)},
          {"kl_max", Quantile(method.ComparedKl(), 1)},
          {"kl", method.kl},
          {"top_agreement", method.TopAgreement()},
          {"top_same", method.is_top_same},
          {"first_difference",
           method.first_difference ? Json(*method.first_difference) : Json(nullptr)},
          {"edit_distance", method.edit_distance},
          {"edit_share", Share(method.edit_distance, LongerText(drift, method))},
          {"tokens", IdsOf(method.tokens)},
          {"text", method.text}};
}

std::string Report(const DriftOptions& options, const BareModel& bare,
                   const decode::Request& request, const Drift& drift) {
  Json methods = Json::array();
  for (const MethodDrift& method : drift.methods) methods.push_back(MethodObject(drift, method));
  const Json report = {{"model", options.run.machine.model},
                       {"fingerprint", bare.model->Fingerprint()},
                       {"numerics", kernels::kNumericsRevision},
                       {"isa", bare.kernels->name},
                       {"threads", bare.team->Size()},
                       {"sampling", SamplingToJson(request.sampling)},
                       {"prompt_tokens", request.prompt.size()},
                       {"full",
                        {{"tokens", IdsOf(drift.tokens)},
                         {"text", drift.text},
                         {"finish_reason", FinishReasonName(drift.reason)},
                         {"kv_bytes", drift.kv_bytes}}},
                       {"methods", std::move(methods)}};
  return DumpJson(report) + "\n";
}

// The full answer's request, checked.
Result<decode::Request> FullRequest(const DriftOptions& options, const BareModel& bare) {
  auto request = MakeRequest(options.run);
  VC_RETURN_IF_ERROR(request);
  const auto text = ReadUserText(options.run);
  VC_RETURN_IF_ERROR(text);
  auto prompt = PromptTokens(options.run, *text, bare.path, *bare.tokenizer);
  VC_RETURN_IF_ERROR(prompt);
  request->prompt = *std::move(prompt);
  request->mode = decode::Mode::kFull;
  const model::ModelConfig& config = bare.model->Config();
  VC_RETURN_IF_ERROR(
      ValidateRequest(*request, {.n_vocab = config.n_vocab, .n_context = config.n_context}));
  return request;
}

Status DriftChecked(const DriftOptions& options) {
  std::vector<std::string> compressors = options.compressors;
  if (compressors.empty()) compressors.push_back(options.run.compressor);
  for (const std::string& spec : compressors) {
    VC_RETURN_IF_ERROR(compress::MakeCompressor(spec));
  }
  const bool is_quiet = options.run.json == "-";
  if (options.run.json && !is_quiet) VC_RETURN_IF_ERROR(CheckWritable(*options.run.json));
  const auto bare = BareModel::Load(options.run.machine);
  VC_RETURN_IF_ERROR(bare);
  const auto request = FullRequest(options, *bare);
  VC_RETURN_IF_ERROR(request);
  const auto n_prompt = static_cast<int>(request->prompt.size());
  const int n_left = bare->model->Config().n_context - n_prompt;
  PrefillProgress progress("steps",
                           request->max_tokens < 0 ? n_left : std::min(request->max_tokens, n_left),
                           isatty(STDERR_FILENO) == 1);
  const auto drift = MeasureDrift(*bare, *request, compressors,
                                  [&progress](int n_done) { progress.Show(n_done); });
  progress.Clear();
  VC_RETURN_IF_ERROR(drift);
  if (options.run.json) {
    VC_RETURN_IF_ERROR(WriteReport(*options.run.json, Report(options, *bare, *request, *drift)));
  }
  return Print(
      is_quiet ? stderr : stdout,
      fmt::format("prompt {} tokens; full answer {} tokens, ended by {}; full KV {}\n\n{}",
                  request->prompt.size(), drift->tokens.size(), FinishReasonName(drift->reason),
                  FormatBytes(drift->kv_bytes), Table(*drift)));
}

int RunDrift(const DriftOptions& options) {
  const Status status = DriftChecked(options);
  return status ? 0 : ReportError("drift", status.error());
}

}  // namespace

void AddDrift(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<DriftOptions>();
  options->run.n_predict = 256;
  options->run.sampling.temperature = 0;  // else a near-tie of the noise counts as drift
  CLI::App& command =
      AddCommand(app, "drift", "says what compressors cost: lossy answers against the full one",
                 [options, &chosen] { chosen = [options] { return RunDrift(*options); }; });
  AddMachineOptions(command, options->run.machine);
  AddPromptOptions(command, options->run);
  AddRepeated(
      command,
      {"--compressor", "SPEC",
       "a compressor, as run takes them; repeatable (default: " + options->run.compressor + ")"},
      options->compressors);
  AddOptionalText(command,
                  {"--json", "FILE",
                   "writes one JSON object with every step; - to standard output, which then holds "
                   "nothing else"},
                  options->run.json);
  AddSwitch(command, "--ignore-eos", "goes on past the end of the answer", options->run.ignore_eos);
  AddSamplingOptions(command, options->run.sampling);
  SetFooter(
      command,
      "KL: of the lossy distribution from the full one at each step, in nats, both behind the "
      "tokens of the\nfull answer, so that every compressor is asked the same; top-1: steps "
      "where both have the same likeliest\ntoken. Both leave out the first step, which the full "
      "KV gives to all. First difference (of tokens) and\nedit distance (of characters) compare "
      "the answers as a user would read them. KV: of the full KV, at\nthe end.");
}

}  // namespace vericache::apps
