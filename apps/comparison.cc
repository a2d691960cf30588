#include "apps/comparison.h"

#include <fmt/format.h>

#include "apps/measures.h"
#include "apps/summary.h"

namespace vericache::apps {
namespace {

std::string Line(const Generation& row, const Generation& full, std::string_view mode,
                 const std::string& kv) {
  const auto difference = Comparison::FirstDifference(row, full);
  const double full_speed = full.TokensPerSecond();
  const bool is_full = &row == &full;
  return fmt::format(
      "{:<9} {:>9.1f} {:>8} {:>9}  {:>16}  {}\n", mode, row.TokensPerSecond(),
      full_speed > 0 ? fmt::format("{:.2f}x", row.TokensPerSecond() / full_speed) : "-",
      is_full ? "-" : (difference ? "no" : "yes"),
      difference ? fmt::format("token {}", *difference) : "-", kv);
}

}  // namespace

std::optional<int> Comparison::FirstDifference(const Generation& a, const Generation& b) {
  return apps::FirstDifference(a.tokens, b.tokens);
}

bool Comparison::IsIdentical() const {
  return !FirstDifference(verified, full) && verified.stats.logits_hash == full.stats.logits_hash;
}

double Comparison::Speedup() const {
  return full.TokensPerSecond() > 0 ? verified.TokensPerSecond() / full.TokensPerSecond() : 0;
}

std::string ComparisonTable(const Comparison& comparison) {
  const Generation& full = comparison.full;
  const std::string full_kv = FormatBytes(full.stats.kv_full_bytes);
  std::string table = fmt::format("{:<9} {:>9} {:>8} {:>9}  {:>16}  {}\n", "mode", "tokens/s",
                                  "speedup", "identical", "first difference", "KV");
  table += Line(full, full, "full", full_kv);
  table +=
      Line(comparison.lossy, full, "lossy", FormatBytes(comparison.lossy.stats.kv_draft_bytes));
  table += Line(comparison.verified, full, "verified",
                fmt::format("{} + {}", FormatBytes(comparison.verified.stats.kv_full_bytes),
                            FormatBytes(comparison.verified.stats.kv_draft_bytes)));
  const bool bits_differ = full.stats.logits_hash != comparison.verified.stats.logits_hash;
  if (!Comparison::FirstDifference(comparison.verified, full) && bits_differ) {
    table +=
        "The tokens are equal but some logits differ: please report this with the output of "
        "vericache --version.\n";
  }
  return table;
}

}  // namespace vericache::apps
