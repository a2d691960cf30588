// vericache bench acceptance: how many drafted tokens each compressor gets accepted, and what it
// keeps and costs, on given texts.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/acceptance.h"
#include "apps/acceptance_grid.h"
#include "apps/commands.h"
#include "apps/flags.h"
#include "apps/json_report.h"
#include "apps/model_path.h"
#include "apps/output_file.h"
#include "apps/prompt.h"
#include "apps/run_options.h"
#include "apps/version.h"
#include "base/machine_limits.h"

namespace vericache::apps {
namespace {

using Json = nlohmann::ordered_json;

struct AcceptanceOptions {
  MachineOptions machine;
  std::vector<std::string> files;
  AcceptanceGrid grid{.compressors = {}, .keeps = {0.5, 0.25, 0.125}, .bits = {16, 4}};
  std::vector<int> draft_lens = {16};
  int n_predict = 128;
  std::optional<std::string> json;
};

// What is loaded once for all texts.
struct Bench {
  std::string model_path;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<model::Tokenizer> tokenizer;
  const kernels::KernelTable* kernels = nullptr;
  ThreadTeam* team = nullptr;
  std::FILE* table = stdout;
};

double PerRow(double sum, const Acceptance& acceptance) {
  return sum / static_cast<double>(acceptance.n_drafted);
}

Json ResultObject(const Acceptance& acceptance, const KnownAnswer& answer) {
  return {
      {"compressor", acceptance.compressor},
      {"draft_len", acceptance.draft_len},
      {"rounds", acceptance.n_rounds},
      {"accepted", static_cast<double>(acceptance.n_accepted) / acceptance.n_rounds},
      {"agreement", PerRow(static_cast<double>(acceptance.n_agreeing), acceptance)},
      {"kl", PerRow(acceptance.kl_sum, acceptance)},
      {"kv_bytes", acceptance.kv_bytes},
      {"kept", static_cast<double>(acceptance.kv_bytes) / static_cast<double>(answer.FullBytes())},
      {"compress_s", acceptance.compress_s},
      {"prefill_share", acceptance.compress_s / answer.PrefillSeconds()}};
}

std::string RowText(const Json& row) {
  return fmt::format(
      "{:<52} {:>5} {:>6} {:>8.1f} {:>6.1f}% {:>8.4f} {:>5.1f}% {:>8.2f} {:>6.1f}%\n",
      row["compressor"].get<std::string>(), row["draft_len"].get<int>(), row["rounds"].get<int>(),
      row["accepted"].get<double>(), 100 * row["agreement"].get<double>(), row["kl"].get<double>(),
      100 * row["kept"].get<double>(), row["compress_s"].get<double>(),
      100 * row["prefill_share"].get<double>());
}

std::string Header(const std::string& file, const KnownAnswer& answer) {
  return fmt::format(
      "{}: {} tokens, full KV {:.1f} MB, prefill {:.2f} s\n"
      "{:<52} {:>5} {:>6} {:>8} {:>7} {:>8} {:>6} {:>8} {:>7}\n",
      file, answer.PromptTokens(), static_cast<double>(answer.FullBytes()) / 1e6,
      answer.PrefillSeconds(), "compressor", "draft", "rounds", "accepted", "agree", "KL", "kept",
      "s", "prefill");
}

Result<Json> MeasureText(const AcceptanceOptions& options, const Bench& bench,
                         const std::string& file, const std::vector<std::string>& compressors) {
  RunOptions text;
  text.file = file;
  const auto user_text = ReadUserText(text);
  VC_RETURN_IF_ERROR(user_text);
  auto prompt = PromptTokens(text, *user_text, bench.model_path, *bench.tokenizer);
  VC_RETURN_IF_ERROR(prompt);
  const auto answer = KnownAnswer::Create(
      {.model = bench.model.get(),
       .tokenizer = bench.tokenizer.get(),
       .kernels = bench.kernels,
       .team = bench.team,
       .n_answer = options.n_predict,
       .max_draft_len = *std::max_element(options.draft_lens.begin(), options.draft_lens.end())},
      *std::move(prompt));
  VC_RETURN_IF_ERROR(answer);
  VC_RETURN_IF_ERROR(Print(bench.table, Header(file, **answer)));
  Json results = Json::array();
  for (const std::string& compressor : compressors) {
    for (const int draft_len : options.draft_lens) {
      const auto acceptance = (*answer)->Measure(compressor, draft_len);
      VC_RETURN_IF_ERROR(acceptance);
      results.push_back(ResultObject(*acceptance, **answer));
      VC_RETURN_IF_ERROR(Print(bench.table, RowText(results.back())));
    }
  }
  return Json{{"file", file},
              {"prompt_tokens", (*answer)->PromptTokens()},
              {"answer_tokens", (*answer)->AnswerTokens()},
              {"prefill_s", (*answer)->PrefillSeconds()},
              {"kv_full_bytes", (*answer)->FullBytes()},
              {"results", std::move(results)}};
}

Json ReportObject(const AcceptanceOptions& options, const Bench& bench, Json texts) {
  return {{"model", options.machine.model},
          {"version", VersionLine()},
          {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
          {"cpu", CpuName()},
          {"isa", bench.kernels->name},
          {"threads", bench.team->Size()},
          {"weight_bytes", bench.model->WeightBytes()},
          {"predict", options.n_predict},
          {"texts", std::move(texts)}};
}

Status BenchChecked(const AcceptanceOptions& options) {
  if (options.files.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "give at least one text with -f FILE");
  }
  const auto compressors = ExpandGrid(options.grid);
  VC_RETURN_IF_ERROR(compressors);
  if (options.json && *options.json != "-") VC_RETURN_IF_ERROR(CheckWritable(*options.json));
  const auto path = ResolveModelPath(options.machine.model);
  VC_RETURN_IF_ERROR(path);
  const auto kernels = kernels::SelectKernels(options.machine.isa);
  VC_RETURN_IF_ERROR(kernels);
  const int n_cores = ReadMachineLimits().n_cores;
  ThreadTeam team(options.machine.n_threads > 0 ? options.machine.n_threads : n_cores);
  auto model = model::Model::Load(*path, team);
  VC_RETURN_IF_ERROR(model);
  auto tokenizer = model::Tokenizer::Load(*path);
  VC_RETURN_IF_ERROR(tokenizer);
  // A JSON report alone may go to standard output; the table then goes to standard error.
  const Bench bench{.model_path = *path,
                    .model = *std::move(model),
                    .tokenizer = *std::move(tokenizer),
                    .kernels = *kernels,
                    .team = &team,
                    .table = options.json == "-" ? stderr : stdout};
  Json texts = Json::array();
  for (const std::string& file : options.files) {
    auto text = MeasureText(options, bench, file, *compressors);
    VC_RETURN_IF_ERROR(text);
    texts.push_back(*std::move(text));
  }
  if (options.json) {
    const Json report = ReportObject(options, bench, std::move(texts));
    VC_RETURN_IF_ERROR(WriteReport(*options.json, DumpJson(report, 1) + "\n"));
  }
  return {};
}

int RunBench(const AcceptanceOptions& options) {
  const Status status = BenchChecked(options);
  return status ? 0 : ReportError("bench acceptance", status.error());
}

}  // namespace

void AddBenchAcceptance(CLI::App& bench, Chosen& chosen) {
  constexpr int kTokensMax = 1 << 16;
  const auto options = std::make_shared<AcceptanceOptions>();
  CLI::App& command = AddCommand(
      bench, "acceptance", "how many drafted tokens each compressor gets accepted, by text",
      [options, &chosen] { chosen = [options] { return RunBench(*options); }; });
  AddMachineOptions(command, options->machine);
  AddRepeated(command, {"-f,--file", "FILE", "a user message to answer; repeatable"},
              options->files);
  AddRepeated(command,
              {"--compressor", "SPEC",
               "a compressor, with every --keep and --bits it leaves open; repeatable (default: "
               "every method)"},
              options->grid.compressors);
  AddNumberList(command, {"--keep", "X,...", "shares to keep"}, {0, 1}, options->grid.keeps);
  AddIntList(command, {"--bits", "N,...", "bits to pack what is kept in: 16 (as it is), 8, 4, 2"},
             {2, 16}, options->grid.bits);
  AddIntList(command, {"--draft-len", "N,...", "tokens drafted a round"}, {1, decode::kMaxDraftLen},
             options->draft_lens);
  AddInt(command, {"-n,--predict", "N", "tokens of the answer that rounds cover, if it is so long"},
         {1, kTokensMax}, options->n_predict);
  AddOptionalText(command, {"--json", "FILE", "writes one JSON object; - to standard output"},
                  options->json);
  SetFooter(command,
            "accepted: drafted tokens before the first wrong one, a round. agree: drafted tokens "
            "that equal the full KV's,\n"
            "given the right ones before them. KL: of the next token's distribution, full from "
            "draft, nats. kept: bytes a\n"
            "draft step reads of the KV, of the full one's. prefill: time to compress, of the "
            "prefill's. The answer is greedy.");
}

}  // namespace vericache::apps
