// A sampler without a model file: whatever needs no vocabulary.
#pragma once

#include <utility>

#include "base/check.h"
#include "decode/sampler.h"
#include "tests/support/byte_tokenizer.h"

namespace vericache::testing_support {

inline decode::Sampler MakeSampler(const decode::SamplingParams& params, int n_vocab,
                                   int n_context = 4096) {
  const ByteTokenizer tokenizer(n_vocab, -1);
  auto sampler = decode::Sampler::Make(params, tokenizer, n_context);
  VC_CHECK(sampler.has_value(), "{}", sampler.error().message);
  return *std::move(sampler);
}

}  // namespace vericache::testing_support
