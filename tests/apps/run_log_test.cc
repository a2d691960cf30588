// Goal: a log gives back to the bit what an answer is a function of; whatever was changed in it is
// noticed; the verdict names every way in which a replay can differ.
// Method: a log with every field off its default, written and read; every byte of it replaced;
// replays made by hand.
#include "apps/run_log.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vericache::apps {
namespace {

using decode::FinishReason;

RunLog Odd() {
  RunLog log;
  log.model = "mödel.gguf";
  log.fingerprint = "abc123";
  log.numerics = 7;
  decode::Request& request = log.request;
  request.prompt = {TokenId{3}, TokenId{0}, TokenId{70000}};
  request.mode = decode::Mode::kLossy;
  request.compressor = "kivi:bits=4";
  request.max_tokens = 5;
  request.ignore_eos = true;
  request.stop = {"\n\n", "\"end\""};
  request.sampling = {.temperature = 0.7f,
                      .seed = ~uint64_t{0},
                      .choice = 3,
                      .filters = {.top_k = 41,
                                  .top_p = 0.1f + 0.2f,
                                  .min_p = 1e-7f,
                                  .typical_p = 0.3f,
                                  .top_n_sigma = 1.1f,
                                  .repeat_penalty = 1.3f,
                                  .presence_penalty = -0.4f,
                                  .frequency_penalty = 0.6f,
                                  .penalty_last_n = -1,
                                  .dry_multiplier = 0.8f,
                                  .dry_base = 1.9f,
                                  .dry_allowed_length = 4,
                                  .dry_last_n = 99,
                                  .dry_breakers = {"\n", "é"},
                                  .logit_bias = {{TokenId{5}, 0.1f}, {TokenId{6}, -INFINITY}},
                                  .grammar = "root ::= \"a\"*"},
                      .xtc = {.probability = 0.2f, .threshold = 0.15f}};
  log.tokens = {TokenId{9}, TokenId{8}};
  log.text = "é\x01 \"quoted\"\n";
  log.reason = FinishReason::kCancelled;
  log.logits_hash = 0xfedcba9876543210u;
  return log;
}

TEST(RunLog, GivesBackWhatItWasGiven) {
  const RunLog log = Odd();
  const std::string text = WriteRunLog(log);
  const auto read = ReadRunLog(text, "'x'");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(WriteRunLog(*read), text);  // every field that is written is read
  const model::FilterParams& filters = read->request.sampling.filters;
  EXPECT_EQ(filters.top_p, 0.1f + 0.2f);
  EXPECT_EQ(filters.logit_bias, log.request.sampling.filters.logit_bias);
  EXPECT_EQ(read->request.sampling.seed, ~uint64_t{0});
  EXPECT_EQ(read->tokens, log.tokens);
  EXPECT_EQ(read->logits_hash, log.logits_hash);
}

TEST(RunLog, NoticesEveryChangedByte) {
  const std::string text = WriteRunLog(Odd());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == '7' ? '8' : '7';
    // Space between values is nobody's.
    if (text[i] == '\n' || (text[i] == ' ' && text[i - 1] == ':')) continue;
    EXPECT_FALSE(ReadRunLog(changed, "'x'").has_value()) << i << ": " << text.substr(i, 20);
  }
}

TEST(RunLog, NoticesEveryCut) {
  const std::string text = WriteRunLog(Odd());
  for (size_t n = 0; n + 2 < text.size(); ++n) {
    const auto read = ReadRunLog(text.substr(0, n), "'x'");
    ASSERT_FALSE(read.has_value()) << n;
    EXPECT_NE(read.error().message.find("'x'"), std::string::npos);
  }
}

// `text` with a checksum that fits, as a forger would give it: the reader says which.
std::string Sealed(std::string text) {
  const auto read = ReadRunLog(text, "'x'");
  if (read || read.error().message.find("checksum") == std::string::npos) return text;
  const std::string right = read.error().message.substr(read.error().message.size() - 16);
  return text.replace(text.rfind('"') - 16, 16, right);
}

std::string Replaced(std::string text, std::string_view part, std::string_view by) {
  return text.replace(text.find(part), part.size(), by);
}

TEST(RunLog, RefusesValuesThatCannotBeWhateverTheChecksumSays) {
  const std::string text = WriteRunLog(Odd());
  ASSERT_TRUE(ReadRunLog(Sealed(Replaced(text, "[9,8]", "[9,7]")), "'x'").has_value());
  for (const auto& [part, by, named] : {std::tuple{"[9,8]", "[9,4294967304]", "4294967304"},
                                        {"[9,8]", "[9,8.5]", "8.5"},
                                        {"[9,8]", "[9,-8]", "-8"},
                                        {"[9,8]", "[9,true]", "true"},
                                        {"[3,0,", "[3,-1,", "-1"},
                                        {"fedcba9876543210", "fedcba987654321g", "logits_hash"},
                                        {"fedcba9876543210", "fedcba98765432101", "logits_hash"},
                                        {"\"cancelled\"", "\"none\"", "none"},
                                        {"\"cancelled\"", "\"error\"", "error"},
                                        {"\"cancelled\"", "\"length\"", "limit of 5"}}) {
    const auto read = ReadRunLog(Sealed(Replaced(text, part, by)), "'x'");
    ASSERT_FALSE(read.has_value()) << by;
    EXPECT_EQ(read.error().code, ErrorCode::kDataLoss);
    EXPECT_NE(read.error().message.find(named), std::string::npos) << read.error().message;
  }
}

TEST(RunLog, RefusesWhatIsNestedTooDeepToBeRead) {
  const std::string deep(1'000'000, '[');
  const auto read = ReadRunLog("{\"vericache_log\": " + deep, "'x'");
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("1000001 deep"), std::string::npos) << read.error().message;
}

TEST(RunLog, RefusesAnotherVersionByItsNumber) {
  const auto read = ReadRunLog(R"({"vericache_log": 2, "checksum": "0"})", "'x'");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(read.error().message, "'x' is a log of version 2; this build reads 1");
}

TEST(RunLog, AReplayAsksForTheTokensLoggedAndOneMoreWhereAGrammarEndedThem) {
  RunLog log = Odd();
  EXPECT_EQ(ReplayOf(log).mode, decode::Mode::kVerified);
  EXPECT_EQ(ReplayOf(log).given, log.tokens);
  EXPECT_EQ(ReplayOf(log).compressor, "identity");  // any build can replay it
  EXPECT_EQ(ReplayOf(log).max_tokens, 2);
  log.reason = FinishReason::kGrammar;
  EXPECT_EQ(ReplayOf(log).max_tokens, 3);
}

TEST(RunLog, TheVerdictNamesEveryDifference) {
  const RunLog log = Odd();
  Generation same;
  same.tokens = log.tokens;
  same.text = log.text;
  same.reason = FinishReason::kLength;
  same.stats.logits_hash = *log.logits_hash;
  EXPECT_TRUE(Judge(log, same).IsIdentical());

  Generation other = same;
  other.tokens[1] = TokenId{4};
  EXPECT_EQ(Judge(log, other).first_difference, 1);
  other.tokens.resize(1);
  EXPECT_EQ(Judge(log, other).first_difference, 1);
  other.tokens = {TokenId{9}, TokenId{8}, TokenId{1}};
  EXPECT_EQ(Judge(log, other).first_difference, 2);
  EXPECT_FALSE(Judge(log, other).IsIdentical());

  other = same;
  other.stats.logits_hash += 1;
  EXPECT_FALSE(Judge(log, other).are_logits_same);
  EXPECT_FALSE(Judge(log, other).IsIdentical());
  RunLog unhashed = log;
  unhashed.logits_hash.reset();
  EXPECT_TRUE(Judge(unhashed, other).IsIdentical());

  other = same;
  other.text += "!";
  EXPECT_FALSE(Judge(log, other).IsIdentical());
  for (const auto reason : {FinishReason::kEos, FinishReason::kStop, FinishReason::kGrammar}) {
    RunLog ended = log;
    ended.reason = reason;
    EXPECT_FALSE(Judge(ended, same).is_same_end);
    other = same;
    other.reason = reason;
    EXPECT_TRUE(Judge(ended, other).IsIdentical());
    EXPECT_FALSE(Judge(log, other).is_same_end);
  }
}

}  // namespace
}  // namespace vericache::apps
