#include "apps/summary.h"

#include <fmt/format.h>

#include "apps/request_names.h"

namespace vericache::apps {
namespace {

std::string DraftLine(const Generation& generation) {
  const decode::Stats& stats = generation.stats;
  return fmt::format("draft    {} rounds, {} tokens drafted, {} accepted, {:.1f} per round\n",
                     stats.rounds, stats.drafted, stats.accepted, generation.MeanAccepted());
}

// "full 5.2 MB, draft 1.3 MB (25 %), compressed 1 times in 0.02 s"
std::string KvText(const decode::Stats& stats) {
  std::string line;
  if (stats.kv_full_bytes > 0) line += fmt::format("full {}", FormatBytes(stats.kv_full_bytes));
  if (stats.kv_draft_bytes > 0) {
    line += fmt::format("{}draft {}", stats.kv_full_bytes > 0 ? ", " : "",
                        FormatBytes(stats.kv_draft_bytes));
    if (stats.kv_full_bytes > 0) {
      line += fmt::format(" ({:.0f} %)", 100.0 * static_cast<double>(stats.kv_draft_bytes) /
                                             static_cast<double>(stats.kv_full_bytes));
    }
    line +=
        fmt::format(", compressed {} times in {:.2f} s", stats.n_compressions, stats.compress_s);
  }
  return line;
}

}  // namespace

std::string FormatBytes(size_t bytes) {
  const auto count = static_cast<double>(bytes);
  if (count < 1e3) return fmt::format("{} B", bytes);
  if (count < 1e6) return fmt::format("{:.1f} KB", count / 1e3);
  if (count < 1e9) return fmt::format("{:.1f} MB", count / 1e6);
  return fmt::format("{:.2f} GB", count / 1e9);
}

std::string TurnLine(const Generation& generation, const decode::Request& request) {
  const decode::Stats& stats = generation.stats;
  std::string line = fmt::format("[{} tokens, {:.1f} tokens/s", stats.generated_tokens,
                                 generation.TokensPerSecond());
  if (generation.reason != decode::FinishReason::kEos) {
    line += fmt::format(", ended by {}", FinishReasonName(generation.reason));
  }
  line += fmt::format("; prompt {} tokens, {} reused, {:.2f} s", stats.prompt_tokens,
                      stats.reused_tokens, stats.prefill_s);
  if (request.mode == decode::Mode::kVerified) {
    line += fmt::format("; {} of {} drafted accepted", stats.accepted, stats.drafted);
  }
  if (request.mode == decode::Mode::kLossy) line += "; lossy: may differ from the model's text";
  const std::string kv = KvText(stats);
  return line + (kv.empty() ? "]" : fmt::format("; KV {}]", kv));
}

std::string Summary(const Generation& generation, const decode::Request& request) {
  const decode::Stats& stats = generation.stats;
  std::string text =
      fmt::format("prompt   {} tokens in {:.2f} s, {:.0f} tokens/s{}\n", stats.prompt_tokens,
                  stats.prefill_s, generation.PrefillTokensPerSecond(),
                  stats.reused_tokens > 0 ? fmt::format("; {} reused", stats.reused_tokens) : "");
  text += fmt::format("answer   {} tokens in {:.2f} s, {:.1f} tokens/s; ended by {}",
                      stats.generated_tokens, stats.decode_s, generation.TokensPerSecond(),
                      FinishReasonName(generation.reason));
  text +=
      request.sampling.temperature > 0 ? fmt::format("; seed {}\n", request.sampling.seed) : "\n";
  if (request.mode == decode::Mode::kVerified) text += DraftLine(generation);
  text += fmt::format("KV       {}\n", KvText(stats));
  if (request.mode == decode::Mode::kLossy) {
    text += fmt::format("lossy    {}: the text may differ from the model's\n", request.compressor);
  }
  return text;
}

}  // namespace vericache::apps
