// Q1. Another engine crashed for some pairs of KV types: a quantised V without flash attention gave
// a null context (ggml-org/llama.cpp#28524). Q4. Four bits gave garbage there
// (ikawrakow/ik_llama.cpp#1142). S19. The KV type asked for was not the one in use
// (ggml-org/llama.cpp#11200). Right: every width that is offered drafts, and the answer is the full
// KV's; every other is refused with those there are before anything is loaded; the memory of the
// draft KV is that of the width asked for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/identity_case.h"

namespace vericache {
namespace {

using ::testing::HasSubstr;

constexpr const char* kMethods[] = {"kivi", "rotated"};

decode::Request Drafted(const std::string& compressor) {
  decode::Request request;
  request.prompt = testing_support::RandomPrompt(700, 4);
  request.max_tokens = 24;
  request.draft_len = 5;
  request.compressor = compressor;
  request.hash_logits = true;
  request.ignore_eos = true;
  return request;
}

TEST(Q1KvTypes, EveryWidthOfferedDraftsAndIsTheOneInUse) {
  const testing_support::TinyModel tiny({.head_dim = 64});
  decode::Request plain = Drafted("");
  plain.mode = decode::Mode::kFull;
  const auto expected = testing_support::RunSolo(tiny, plain);
  for (const std::string method : kMethods) {
    std::map<int, size_t> n_bytes;
    for (const int bits : {8, 4, 2}) {
      const auto answer =
          testing_support::RunSolo(tiny, Drafted(fmt::format("{}:bits={}", method, bits)));
      testing_support::ExpectIdentical(answer, expected);
      EXPECT_GT(answer.stats.drafted, 0) << method << " " << bits;
      n_bytes[bits] = answer.stats.kv_draft_bytes;
    }
    // The tail is the same for all widths and the steps are nearly, so differences are those of the
    // codes: of at least 500 of the 700 tokens, keys and values, 2 layers, 2 heads of 64.
    constexpr size_t kTwoBits = 500 * 2 * 2 * 2 * 64 * 2 / 8;
    const auto last_two_bits = static_cast<double>(n_bytes[4] - n_bytes[2]);
    EXPECT_NEAR(static_cast<double>(n_bytes[8] - n_bytes[4]), 2 * last_two_bits,
                0.1 * last_two_bits)
        << method;
    EXPECT_GE(n_bytes[4] - n_bytes[2], kTwoBits) << method;
  }
}

TEST(Q1KvTypes, EveryOtherWidthIsRefusedWithThoseThereAre) {
  for (const std::string method : kMethods) {
    for (const std::string bits : {"0", "1", "3", "5", "6", "16", "-4", "4.0", "f16", ""}) {
      const auto made = compress::MakeCompressor(method + ":bits=" + bits);
      ASSERT_FALSE(made.has_value()) << method << ":bits=" << bits;
      EXPECT_THAT(made.error().message, HasSubstr(bits.empty() ? "key=value" : "8, 4")) << bits;
    }
  }
}

}  // namespace
}  // namespace vericache
