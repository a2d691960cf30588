// vericache bench: speed of prefill, decoding and verifying by depth, against what this machine can
// do at most.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/commands.h"
#include "apps/flags.h"
#include "apps/json_report.h"
#include "apps/machine_speed.h"
#include "apps/model_path.h"
#include "apps/row_timing.h"
#include "apps/run_options.h"
#include "apps/version.h"

namespace vericache::apps {
namespace {

struct BenchOptions {
  MachineOptions machine;
  std::vector<int> depths = {0, 2048, 7500};
  std::vector<int> rows = {1, 8, 16, 32, 64};
  int prefill_chunk = 256;
  int n_reps = 5;
  std::optional<std::string> json;
};

// The ceilings, taken in the same run.
struct Ceilings {
  double read_bytes_per_s = 0;
  double macs_per_s = 0;
};

// A JSON report alone may go to standard output; the table then goes to standard error.
std::FILE* TableFile(const BenchOptions& options) { return options.json == "-" ? stderr : stdout; }

nlohmann::ordered_json TimingObject(const RowTiming& timing, const char* kind,
                                    const Ceilings& ceilings) {
  const double read_rate = static_cast<double>(timing.read_bytes) / timing.min_s;
  const double mac_rate = timing.n_macs / timing.min_s;
  return {{"kind", kind},
          {"depth", timing.depth},
          {"rows", timing.n_rows},
          {"ms_min", timing.min_s * 1e3},
          {"ms_median", timing.median_s * 1e3},
          {"tokens_per_s", timing.n_rows / timing.min_s},
          {"gb_per_s", read_rate / 1e9},
          {"read_share", read_rate / ceilings.read_bytes_per_s},
          {"gmac_per_s", mac_rate / 1e9},
          {"matmul_share", mac_rate / ceilings.macs_per_s}};
}

void PrintHeader(std::FILE* out) {
  fmt::print(out, "{:>7} {:<8} {:>5} {:>9} {:>9} {:>10} {:>7} {:>6} {:>8} {:>7}\n", "depth", "kind",
             "rows", "ms", "median", "tokens/s", "GB/s", "read", "GMAC/s", "matmul");
}

void PrintTiming(std::FILE* out, const nlohmann::ordered_json& timing) {
  fmt::print(
      out, "{:>7} {:<8} {:>5} {:>9.2f} {:>9.2f} {:>10.1f} {:>7.1f} {:>5.0f}% {:>8.1f} {:>6.0f}%\n",
      timing["depth"].get<int>(), timing["kind"].get<std::string>(), timing["rows"].get<int>(),
      timing["ms_min"].get<double>(), timing["ms_median"].get<double>(),
      timing["tokens_per_s"].get<double>(), timing["gb_per_s"].get<double>(),
      100 * timing["read_share"].get<double>(), timing["gmac_per_s"].get<double>(),
      100 * timing["matmul_share"].get<double>());
  std::fflush(out);
}

// All measurements, printed as they come.
Result<nlohmann::ordered_json> Measure(const BenchOptions& options, TimedSequence& sequence,
                                       const Ceilings& ceilings) {
  auto results = nlohmann::ordered_json::array();
  std::FILE* out = TableFile(options);
  PrintHeader(out);
  const auto record = [&](const RowTiming& timing, const char* kind) {
    results.push_back(TimingObject(timing, kind, ceilings));
    PrintTiming(out, results.back());
  };
  for (const int depth : options.depths) {
    VC_RETURN_IF_ERROR(sequence.GrowTo(depth));
    record(sequence.Time(options.prefill_chunk, model::LogitRows::kLast, options.n_reps),
           "prefill");
    for (const int n_rows : options.rows) {
      record(sequence.Time(n_rows, model::LogitRows::kAll, options.n_reps),
             n_rows == 1 ? "decode" : "verify");
    }
  }
  return results;
}

Result<int> BenchChecked(BenchOptions options) {
  if (options.json && *options.json != "-") VC_RETURN_IF_ERROR(CheckWritable(*options.json));
  std::sort(options.depths.begin(), options.depths.end());
  const auto path = ResolveModelPath(options.machine.model);
  if (!path) return tl::unexpected(path.error());
  const auto kernels = kernels::SelectKernels(options.machine.isa);
  if (!kernels) return tl::unexpected(kernels.error());
  const auto n_cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  ThreadTeam team(options.machine.n_threads > 0 ? options.machine.n_threads : n_cores);
  const auto model = model::Model::Load(*path, team);
  if (!model) return tl::unexpected(model.error());
  const int max_rows =
      std::max(*std::max_element(options.rows.begin(), options.rows.end()), options.prefill_chunk);
  auto sequence =
      TimedSequence::Create(**model, **kernels, team, options.depths.back() + max_rows, max_rows);
  if (!sequence) return tl::unexpected(sequence.error());

  const Ceilings ceilings{MeasureReadBandwidth(team), MeasureMatmulRate(**kernels, team)};
  fmt::print(TableFile(options),
             "{}, {} {} threads; memory read {:.1f} GB/s, int8 matmul {:.0f} GMAC/s in cache\n",
             options.machine.model, (*kernels)->name, team.Size(), ceilings.read_bytes_per_s / 1e9,
             ceilings.macs_per_s / 1e9);
  auto results = Measure(options, **sequence, ceilings);
  if (!results) return tl::unexpected(results.error());
  if (options.json) {
    const nlohmann::ordered_json report = {{"model", options.machine.model},
                                           {"version", VersionLine()},
                                           {"cpu", CpuName()},
                                           {"isa", (*kernels)->name},
                                           {"threads", team.Size()},
                                           {"read_gb_per_s", ceilings.read_bytes_per_s / 1e9},
                                           {"matmul_gmac_per_s", ceilings.macs_per_s / 1e9},
                                           {"results", std::move(*results)}};
    VC_RETURN_IF_ERROR(WriteReport(*options.json, report.dump() + "\n"));
  }
  return std::fflush(stdout) == 0 ? 0 : kExitBrokenPipe;
}

int Bench(const BenchOptions& options) {
  const auto exit_code = BenchChecked(options);
  return exit_code ? *exit_code : ReportError("bench", exit_code.error());
}

}  // namespace

void AddBench(CLI::App& app, Chosen& chosen) {
  constexpr int kDepthMax = 1 << 24;
  constexpr int kRowsMax = 512;
  const auto options = std::make_shared<BenchOptions>();
  CLI::App& command =
      AddCommand(app, "bench", "times prefill, decoding and verifying by depth",
                 [options, &chosen] { chosen = [options] { return Bench(*options); }; });
  AddMachineOptions(command, options->machine);
  AddIntList(command, {"--depths", "N,...", "tokens of KV before the rows"}, {0, kDepthMax},
             options->depths);
  AddIntList(command, {"--rows", "N,...", "rows of one pass"}, {1, kRowsMax}, options->rows);
  AddInt(command, {"--prefill-chunk", "N", "rows of a prefill pass"}, {1, kRowsMax},
         options->prefill_chunk);
  AddInt(command, {"--reps", "N", "passes timed for each figure; the least counts"}, {1, 1000},
         options->n_reps);
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
