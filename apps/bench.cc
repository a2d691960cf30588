// vericache bench: speed of prefill, decoding and verifying by depth, against what this machine can
// do at most; with --breakdown, by part of the layer; with --commands, at somebody's word.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench_breakdown.h"
#include "apps/bench_commands.h"
#include "apps/bench_machine.h"
#include "apps/commands.h"
#include "apps/flags.h"
#include "apps/json_report.h"
#include "apps/output_file.h"
#include "apps/row_timing.h"
#include "apps/run_options.h"

namespace vericache::apps {
namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  MachineOptions machine;
  std::vector<int> depths = {0, 2048, 7500};
  std::vector<int> rows = {1, 8, 16, 32, 64};
  int prefill_chunk = 256;
  int n_reps = 5;
  bool is_breakdown = false;
  bool takes_commands = false;
  std::optional<std::string> json;
};

// One figure of the table: the same pass several times.
struct Row {
  const char* kind;
  int depth;
  int n_rows;
  double min_s;
  double median_s;
  PassCost cost;
};

// A JSON report alone may go to standard output; the table then goes to standard error.
std::FILE* TableFile(const BenchOptions& options) { return options.json == "-" ? stderr : stdout; }

Json RowObject(const Row& row, const Ceilings& ceilings) {
  const double read_rate =
      static_cast<double>(row.cost.weight_bytes + row.cost.kv_bytes) / row.min_s;
  const double mac_rate = (row.cost.matrix_macs + row.cost.attention_macs) / row.min_s;
  return {{"kind", row.kind},
          {"depth", row.depth},
          {"rows", row.n_rows},
          {"ms_min", row.min_s * 1e3},
          {"ms_median", row.median_s * 1e3},
          {"tokens_per_s", row.n_rows / row.min_s},
          {"gb_per_s", read_rate / 1e9},
          {"read_share", read_rate / ceilings.read_bytes_per_s},
          {"gmac_per_s", mac_rate / 1e9},
          {"matmul_share", mac_rate / ceilings.macs_per_s}};
}

std::string Header() {
  return fmt::format("{:>7} {:<8} {:>5} {:>9} {:>9} {:>10} {:>7} {:>6} {:>8} {:>7}\n", "depth",
                     "kind", "rows", "ms", "median", "tokens/s", "GB/s", "read", "GMAC/s",
                     "matmul");
}

std::string RowText(const Json& row) {
  return fmt::format(
      "{:>7} {:<8} {:>5} {:>9.2f} {:>9.2f} {:>10.1f} {:>7.1f} {:>5.0f}% {:>8.1f} {:>6.0f}%\n",
      row["depth"].get<int>(), row["kind"].get<std::string>(), row["rows"].get<int>(),
      row["ms_min"].get<double>(), row["ms_median"].get<double>(),
      row["tokens_per_s"].get<double>(), row["gb_per_s"].get<double>(),
      100 * row["read_share"].get<double>(), row["gmac_per_s"].get<double>(),
      100 * row["matmul_share"].get<double>());
}

Row Time(TimedSequences& sequences, const char* kind, int n_rows, model::LogitRows logits,
         int n_reps) {
  std::vector<double> seconds;
  sequences.Time(n_rows, logits);  // warms caches and buffers
  for (int rep = 0; rep < n_reps; ++rep) {
    seconds.push_back(sequences.Time(n_rows, logits).seconds);
  }
  std::sort(seconds.begin(), seconds.end());
  return {.kind = kind,
          .depth = sequences.Depth(),
          .n_rows = n_rows,
          .min_s = seconds.front(),
          .median_s = seconds[seconds.size() / 2],
          .cost = sequences.Cost(n_rows, logits)};
}

// Prefill, decoding and verifying at the present depth.
struct Kind {
  const char* name;
  int n_rows;
  model::LogitRows logits;
};
std::vector<Kind> Kinds(const BenchOptions& options) {
  std::vector<Kind> kinds = {{"prefill", options.prefill_chunk, model::LogitRows::kLast}};
  for (const int n_rows : options.rows) {
    kinds.push_back({n_rows == 1 ? "decode" : "verify", n_rows, model::LogitRows::kAll});
  }
  return kinds;
}

// All measurements, printed as they come.
Result<Json> Measure(const BenchOptions& options, BenchMachine& machine, TimedSequences& sequences,
                     const Ceilings& ceilings) {
  Json results = Json::array();
  std::FILE* out = TableFile(options);
  std::optional<StepProfiler> profiler;
  if (options.is_breakdown) {
    auto made = StepProfiler::Make(machine);
    if (!made) return tl::unexpected(made.error());
    profiler = std::move(*made);
  }
  if (!profiler) VC_RETURN_IF_ERROR(Print(out, Header()));
  for (const int depth : options.depths) {
    VC_RETURN_IF_ERROR(sequences.SetDepth(depth));
    for (const Kind& kind : Kinds(options)) {
      const Row row = Time(sequences, kind.name, kind.n_rows, kind.logits, options.n_reps);
      results.push_back(RowObject(row, ceilings));
      if (!profiler) {
        VC_RETURN_IF_ERROR(Print(out, RowText(results.back())));
        continue;
      }
      const Breakdown breakdown =
          profiler->Measure(sequences, kind.n_rows, kind.logits, options.n_reps);
      results.back()["parts_ms"] = BreakdownObject(breakdown);
      VC_RETURN_IF_ERROR(Print(
          out, fmt::format("\n{}, {}", kind.name, BreakdownTable(breakdown, depth, kind.n_rows))));
    }
  }
  return results;
}

Status BenchChecked(BenchOptions options) {
  if (options.json && *options.json != "-") VC_RETURN_IF_ERROR(CheckWritable(*options.json));
  std::sort(options.depths.begin(), options.depths.end());
  auto machine = BenchMachine::Load(options.machine);
  if (!machine) return tl::unexpected(machine.error());
  if (options.takes_commands) return AnswerBenchCommands(*machine);
  const int max_rows =
      std::max(*std::max_element(options.rows.begin(), options.rows.end()), options.prefill_chunk);
  auto sequences = TimedSequences::Create(
      *machine->model, *machine->kernels, *machine->team,
      {.n_sequences = 1, .n_tokens = options.depths.back() + max_rows, .max_rows = max_rows});
  if (!sequences) return tl::unexpected(sequences.error());

  const Ceilings ceilings = MeasureCeilings(*machine);
  VC_RETURN_IF_ERROR(
      Print(TableFile(options),
            fmt::format(
                "{}, {} {} threads; memory read {:.1f} GB/s, int8 matmul {:.0f} GMAC/s in cache\n",
                options.machine.model, machine->kernels->name, machine->team->Size(),
                ceilings.read_bytes_per_s / 1e9, ceilings.macs_per_s / 1e9)));
  auto results = Measure(options, *machine, **sequences, ceilings);
  if (!results) return tl::unexpected(results.error());
  if (options.json) {
    Json report = DescribeMachine(*machine);
    report["read_gb_per_s"] = ceilings.read_bytes_per_s / 1e9;
    report["matmul_gmac_per_s"] = ceilings.macs_per_s / 1e9;
    report["results"] = std::move(*results);
    VC_RETURN_IF_ERROR(WriteReport(*options.json, DumpJson(report) + "\n"));
  }
  return {};
}

int Bench(const BenchOptions& options) {
  const Status status = BenchChecked(options);
  return status ? 0 : ReportError("bench", status.error());
}

}  // namespace

void AddBench(CLI::App& app, Chosen& chosen) {
  constexpr int kDepthMax = 1 << 24;
  constexpr int kRowsMax = 512;
  const auto options = std::make_shared<BenchOptions>();
  CLI::App& command = AddCommand(app, "bench", "times prefill, decoding and verifying by depth",
                                 [options, &chosen] {
                                   // A command of its own, below, has come first.
                                   if (!chosen) chosen = [options] { return Bench(*options); };
                                 });
  AddBenchAcceptance(command, chosen);
  AddMachineOptions(command, options->machine);
  AddIntList(command, {"--depths", "N,...", "tokens of KV before the rows"}, {0, kDepthMax},
             options->depths);
  AddIntList(command, {"--rows", "N,...", "rows of one pass"}, {1, kRowsMax}, options->rows);
  AddInt(command, {"--prefill-chunk", "N", "rows of a prefill pass"}, {1, kRowsMax},
         options->prefill_chunk);
  AddInt(command, {"--reps", "N", "passes timed for each figure; the least counts"}, {1, 1000},
         options->n_reps);
  AddSwitch(command, "--breakdown",
            "shows where the time of a step goes, by part of the layer: the mean over threads",
            options->is_breakdown);
  AddSwitch(command, "--commands",
            "times what standard input says and answers in JSON, a line each: what ./dev bench "
            "speaks with both engines",
            options->takes_commands);
  AddOptionalText(command, {"--json", "FILE", "writes one JSON object; - to standard output"},
                  options->json);
  SetFooter(
      command,
      "read: share of the memory bandwidth measured in the same run; matmul: share of the rate of "
      "our int8 matrix\n"
      "product on cached weights. Figures are of this machine as it is now: other work on it "
      "lowers them.");
}

}  // namespace vericache::apps
