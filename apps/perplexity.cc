// vericache perplexity: how well a model foresees a text.
//
// As llama.cpp measures it, so that figures compare: the text is cut into chunks of the context's
// length, each is run from an empty KV, and the second half of each is scored, whose tokens have
// at least half a context before them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/bare_model.h"
#include "apps/commands.h"
#include "apps/flags.h"
#include "apps/json_report.h"
#include "apps/measures.h"
#include "apps/output_file.h"
#include "apps/progress.h"
#include "apps/prompt.h"
#include "apps/run_options.h"
#include "kernels/numerics.h"
#include "kv/full_kv.h"

namespace vericache::apps {
namespace {

constexpr int kPassRows = 128;  // each has logits of the whole vocabulary

struct PerplexityOptions {
  RunOptions run;  // machine and text
  int n_context = 512;
  int n_chunks = -1;
};

struct Score {
  int n_chunks = 0;
  MeanTally nll;
  double seconds = 0;
};

// Adds the surprises of the tokens behind the first half. Requires: `kv` is empty.
Status ScoreChunk(std::span<const TokenId> chunk, model::Pass& pass, kv::FullKv& kv,
                  MeanTally& nll) {
  const size_t n_unscored = chunk.size() / 2;
  for (size_t first = 0; first < chunk.size(); first += kPassRows) {
    const size_t n_rows = std::min<size_t>(kPassRows, chunk.size() - first);
    const model::RowGroup group{
        .tokens = chunk.subspan(first, n_rows),
        .first_position = Position{kv.Length()},
        .kv = &kv,
        .logits = first + n_rows > n_unscored ? model::LogitRows::kAll : model::LogitRows::kNone,
        .tap = nullptr};
    const model::GroupLogits logits = pass.Run({&group, 1}).front();
    if (!logits.are_all_rows_finite) {
      return MakeError(ErrorCode::kDataLoss,
                       "the model computed NaN or infinity: its weights are damaged, or its "
                       "values too large");
    }
    for (int row = 0; row < logits.n_rows; ++row) {
      const size_t next = first + static_cast<size_t>(row) + 1;
      if (next > n_unscored && next < chunk.size()) {
        nll.Add(Surprise(logits.Row(row), chunk[next]));
      }
    }
    kv.Commit(static_cast<int>(n_rows));
  }
  return {};
}

Result<std::vector<TokenId>> ReadTokens(const PerplexityOptions& options, const BareModel& bare) {
  const auto text = ReadUserText(options.run);
  VC_RETURN_IF_ERROR(text);
  std::vector<TokenId> tokens = bare.tokenizer->Encode(*text);
  if (bare.tokenizer->Bos().value >= 0) tokens.insert(tokens.begin(), bare.tokenizer->Bos());
  const int n_trained = bare.model->Config().n_context;
  if (options.n_context > n_trained) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "-c is {}; the model was trained for {} tokens at most", options.n_context,
                     n_trained);
  }
  if (tokens.size() >= static_cast<size_t>(options.n_context)) return tokens;
  return MakeError(ErrorCode::kInvalidArgument,
                   "the text has {} tokens, but one chunk takes {}: give a longer text or a "
                   "smaller -c",
                   tokens.size(), options.n_context);
}

Result<Score> ScoreText(const PerplexityOptions& options, const BareModel& bare) {
  auto tokens = ReadTokens(options, bare);
  VC_RETURN_IF_ERROR(tokens);
  const auto n_context = static_cast<size_t>(options.n_context);
  size_t n_chunks = tokens->size() / n_context;
  if (options.n_chunks > 0) n_chunks = std::min(n_chunks, static_cast<size_t>(options.n_chunks));
  const kv::KvShape shape = bare.model->Config().Kv();
  kv::BlockPool pool(shape, PoolBytesFor(shape, options.n_context, 1));
  kv::FullKv kv(pool);
  model::Pass pass(*bare.model, *bare.kernels, *bare.team, kPassRows);
  PrefillProgress progress("score", static_cast<int>(n_chunks * n_context),
                           isatty(STDERR_FILENO) == 1);
  Score score;
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < n_chunks; ++i) {
    const std::span chunk = std::span(*tokens).subspan(i * n_context, n_context);
    if (bare.tokenizer->Bos().value >= 0) chunk[0] = bare.tokenizer->Bos();
    VC_RETURN_IF_ERROR(kv.Reserve(options.n_context));
    VC_RETURN_IF_ERROR(ScoreChunk(chunk, pass, kv, score.nll));
    kv.Truncate(0);
    progress.Show(static_cast<int>((i + 1) * n_context));
  }
  score.n_chunks = static_cast<int>(n_chunks);
  score.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return score;
}

Status PerplexityChecked(const PerplexityOptions& options) {
  if (options.run.json && *options.run.json != "-") {
    VC_RETURN_IF_ERROR(CheckWritable(*options.run.json));
  }
  const auto bare = BareModel::Load(options.run.machine);
  VC_RETURN_IF_ERROR(bare);
  const auto score = ScoreText(options, *bare);
  VC_RETURN_IF_ERROR(score);
  const double perplexity = std::exp(score->nll.Mean());
  const double error = perplexity * score->nll.Error();  // to first order
  if (options.run.json) {
    const nlohmann::ordered_json report = {{"model", options.run.machine.model},
                                           {"fingerprint", bare->model->Fingerprint()},
                                           {"numerics", kernels::kNumericsRevision},
                                           {"isa", bare->kernels->name},
                                           {"threads", bare->team->Size()},
                                           {"ctx_size", options.n_context},
                                           {"chunks", score->n_chunks},
                                           {"scored_tokens", score->nll.Count()},
                                           {"nll", score->nll.Mean()},
                                           {"nll_error", score->nll.Error()},
                                           {"perplexity", perplexity},
                                           {"perplexity_error", error},
                                           {"seconds", score->seconds}};
    VC_RETURN_IF_ERROR(WriteReport(*options.run.json, DumpJson(report) + "\n"));
  }
  return Print(options.run.json == "-" ? stderr : stdout,
               fmt::format("perplexity {:.4f} ± {:.4f}\nnll        {:.5f} ± {:.5f} per token\n"
                           "scored     {} tokens in {} chunks of {}, {:.2f} s\n",
                           perplexity, error, score->nll.Mean(), score->nll.Error(),
                           score->nll.Count(), score->n_chunks, options.n_context, score->seconds));
}

int Perplexity(const PerplexityOptions& options) {
  const Status status = PerplexityChecked(options);
  return status ? 0 : ReportError("perplexity", status.error());
}

}  // namespace

void AddPerplexity(CLI::App& app, Chosen& chosen) {
  constexpr int kCountMax = 1 << 24;
  const auto options = std::make_shared<PerplexityOptions>();
  CLI::App& command =
      AddCommand(app, "perplexity", "says how well a model foresees a text",
                 [options, &chosen] { chosen = [options] { return Perplexity(*options); }; });
  AddMachineOptions(command, options->run.machine);
  AddOptionalText(command, {"-f,--file", "FILE", "the text; - reads standard input, the default"},
                  options->run.file);
  AddOptionalText(command, {"-p,--prompt", "TEXT", "the text itself, or what follows the file"},
                  options->run.prompt);
  AddInt(command, {"-c,--ctx-size", "N", "tokens of a chunk"}, {4, kCountMax}, options->n_context);
  AddInt(command, {"--chunks", "N", "chunks to score; -1 all"}, {-1, kCountMax}, options->n_chunks);
  AddOptionalText(command,
                  {"--json", "FILE",
                   "writes one JSON object; - to standard output, which then holds nothing else"},
                  options->run.json);
  SetFooter(
      command,
      "The text is cut into chunks, each is run from an empty KV, and the second half of each "
      "is scored,\nas llama.cpp does. ± is one standard error; nll is in nats.");
}

}  // namespace vericache::apps
