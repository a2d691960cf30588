// The log of an answer is refused, or asks for what a model can refuse or replay, and gives the
// same log again. Each is tried with the checksum that fits, too.
#include "apps/run_log.h"
#include "base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace vericache::fuzz {
namespace {

constexpr decode::RequestLimits kLimits{.n_vocab = 320, .n_context = 4096};
constexpr size_t kChecksumDigits = 16;

// Which checksum fits is the end of the message that refuses another.
std::string Sealed(std::string_view text) {
  std::string sealed(text);
  const auto read = apps::ReadRunLog(text, "log");
  const size_t quote = sealed.rfind('"');
  if (read || read.error().message.find("that of its content") == std::string::npos ||
      quote == std::string::npos || quote < kChecksumDigits) {
    return sealed;
  }
  const std::string& message = read.error().message;
  return sealed.replace(quote - kChecksumDigits, kChecksumDigits,
                        message.substr(message.size() - kChecksumDigits));
}

bool Read(std::string_view text) {
  const auto log = apps::ReadRunLog(text, "log");
  if (!log) {
    VC_CHECK(!log.error().message.empty());
    return false;
  }
  const Status valid = decode::ValidateRequest(apps::ReplayOf(*log), kLimits);
  if (!valid) return false;  // JSON has no place for its infinities
  const std::string written = apps::WriteRunLog(*log);
  const auto again = apps::ReadRunLog(written, "log");
  VC_CHECK(again && apps::WriteRunLog(*again) == written, "{}", written);
  return true;
}

}  // namespace

bool RunOne(std::span<const uint8_t> input) {
  const bool is_taken = Read(AsText(input));
  VC_CHECK(Read(Sealed(AsText(input))) || !is_taken);
  return is_taken;
}

std::vector<std::string> Seeds() {
  apps::RunLog log;
  log.model = "tiny.gguf";
  log.fingerprint = std::string(64, 'a');
  log.numerics = 1;
  log.request.prompt = {TokenId{5}, TokenId{6}};
  log.request.max_tokens = 2;
  log.tokens = {TokenId{7}, TokenId{8}};
  log.text = "\xe2\x82\xac";
  log.reason = decode::FinishReason::kLength;
  log.logits_hash = 0x123456789abcdef0u;
  std::vector<std::string> seeds = {apps::WriteRunLog(log)};
  log.request.mode = decode::Mode::kLossy;
  log.request.stop = {"\n\n"};
  log.request.sampling.filters.logit_bias = {{TokenId{3}, -1.5f}};
  log.request.sampling.filters.grammar = "root ::= \"a\"*";
  log.reason = decode::FinishReason::kGrammar;
  log.logits_hash.reset();
  seeds.push_back(apps::WriteRunLog(log));
  return seeds;
}

}  // namespace vericache::fuzz
