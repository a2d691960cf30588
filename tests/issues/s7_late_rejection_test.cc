// S7. Another engine handled a rejection one step late: with sampling a word vanished from the
// text, or its prefix cache failed an assertion (openvinotoolkit/openvino.genai#4190). Right:
// rejected rows are gone before anything else reads the sequence. With temperature 1 and drafts of
// 5 the text equals plain decoding's with the same random stream, and over seeds the tokens are
// distributed as in plain decoding.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/identity_case.h"
#include "tests/support/scripted_session.h"

namespace vericache {
namespace {

using testing_support::DraftKind;
using testing_support::HashedScript;
using testing_support::ScriptedSession;

TEST(S7LateRejection, TheTextIsPlainDecodings) {
  const testing_support::TinyModel tiny({.architecture = model::Architecture::kQwen2});
  int64_t n_rejected = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    decode::Request request;
    request.prompt = testing_support::RandomPrompt(200, seed);
    request.max_tokens = 80;
    request.draft_len = 5;
    request.compressor = "streaming:keep=0.25";
    request.hash_logits = true;
    request.sampling = {.temperature = 1.0f, .seed = seed};
    decode::Request plain = request;
    plain.mode = decode::Mode::kFull;
    const auto drafted = testing_support::RunSolo(tiny, request);
    testing_support::ExpectIdentical(drafted, testing_support::RunSolo(tiny, plain));
    n_rejected += drafted.stats.drafted - drafted.stats.accepted;
  }
  EXPECT_GT(n_rejected, 50);
}

// Four tokens, two of them drafted badly: the fourth token of the answer against its exact
// distribution, summed over all ways to reach it.
TEST(S7LateRejection, TokensAreDistributedAsInPlainDecoding) {
  constexpr int kSeeds = 6000;
  constexpr int kVocab = 6;
  std::vector<int> drafted_counts(kVocab);
  std::vector<int> plain_counts(kVocab);
  for (int seed = 0; seed < kSeeds; ++seed) {
    for (const decode::Mode mode : {decode::Mode::kVerified, decode::Mode::kFull}) {
      decode::Request request;
      request.prompt = {TokenId{1}, TokenId{2}};
      request.mode = mode;
      request.max_tokens = 4;
      request.draft_len = 5;
      request.ignore_eos = true;
      // Other seeds for the plain runs: the same ones would give the same counts by definition.
      const int offset = mode == decode::Mode::kFull ? kSeeds : 0;
      request.sampling = {.temperature = 1.0f, .seed = static_cast<uint64_t>(seed + offset)};
      ScriptedSession run(request, HashedScript(DraftKind::kSometimes, kVocab, 0),
                          {.n_vocab = kVocab, .eos = 0});
      run.Run();
      auto& counts = mode == decode::Mode::kFull ? plain_counts : drafted_counts;
      ++counts[static_cast<size_t>(run.tokens.back().value)];
    }
  }
  double chi_square = 0;  // two samples of equal size
  for (size_t i = 0; i < kVocab; ++i) {
    const double difference = drafted_counts[i] - plain_counts[i];
    const double sum = drafted_counts[i] + plain_counts[i];
    if (sum > 0) chi_square += difference * difference / sum;
  }
  EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom, one in a thousand
}

}  // namespace
}  // namespace vericache
