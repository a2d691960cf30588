// One request through a real model and a real session, without the engine's threads and queues:
// what identity tests compare.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compress/registry.h"
#include "decode/session.h"
#include "kernels/kernels.h"
#include "kv/full_kv.h"
#include "model/forward.h"
#include "model/model.h"
#include "model/tokenizer.h"
#include "tests/support/property.h"
#include "tests/support/same_bits.h"
#include "tests/support/tiny_model_file.h"
#include "tests/support/token_values.h"

namespace vericache::testing_support {

// A tiny model, loaded.
class TinyModel {
 public:
  explicit TinyModel(const model::TinyModelSpec& spec) : file_(spec) {
    ThreadTeam team(1);
    auto loaded = model::Model::Load(file_.Path(), team);
    VC_CHECK(loaded.has_value(), "{}", loaded.error().message);
    model_ = *std::move(loaded);
    auto tokenizer = model::Tokenizer::Load(file_.Path());
    VC_CHECK(tokenizer.has_value(), "{}", tokenizer.error().message);
    tokenizer_ = *std::move(tokenizer);
  }
  const std::string& Path() const { return file_.Path(); }
  const model::Model& Get() const { return *model_; }
  const model::Tokenizer& GetTokenizer() const { return *tokenizer_; }

 private:
  TinyModelFile file_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<model::Tokenizer> tokenizer_;
};

struct SoloOptions {
  std::string isa = "auto";
  int n_threads = 1;
  int prefill_chunk = 512;
  decode::TailPolicy tail{};
  // What the drafter sees in place of its logits, if given.
  std::function<void(std::span<float> logits)> distort_drafts{};
};

struct SoloResult {
  std::vector<decode::Session::Step> steps;  // what was done, in order
  std::vector<TokenId> tokens;
  std::string text;
  decode::FinishReason reason = decode::FinishReason::kNone;
  Error error{};
  decode::Stats stats;
  // Codes and steps of every token in the full KV, all layers and heads.
  std::vector<int16_t> kv_codes;
  std::vector<float> kv_steps;
};

inline void ReadFullKv(const kv::FullKv& full, SoloResult& result) {
  std::vector<kv::Segment> segments;
  const kv::KvShape& shape = full.Shape();
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    for (int head = 0; head < shape.n_kv_heads; ++head) {
      segments.clear();
      full.Segments(layer, head, segments);
      for (int token = 0; token < full.Length(); ++token) {
        const kernels::SlotRun& run =
            segments.front().runs[static_cast<size_t>(token / kv::kBlockTokens)];
        const int slot = token % kv::kBlockTokens;
        const auto* keys = reinterpret_cast<const int16_t*>(run.keys);
        const auto* values = reinterpret_cast<const int16_t*>(run.values);
        for (int dim = 0; dim < shape.head_dim; ++dim) {
          result.kv_codes.push_back(keys[kernels::KeyIndex(shape.head_dim, slot, dim)]);
          result.kv_codes.push_back(values[kernels::ValueIndex(shape.head_dim, slot, dim)]);
        }
        result.kv_steps.push_back(run.key_scales[slot]);
        result.kv_steps.push_back(run.value_scales[slot]);
      }
    }
  }
}

inline std::unique_ptr<compress::Compressor> CompressorOf(const decode::Request& request) {
  if (!decode::UsesCompressor(request)) return nullptr;
  auto compressor = compress::MakeCompressor(request.compressor);
  VC_CHECK(compressor.has_value(), "{}", compressor.error().message);
  return *std::move(compressor);
}

inline SoloResult RunSolo(const TinyModel& tiny, const decode::Request& request,
                          const SoloOptions& options = {}) {
  using Step = decode::Session::Step;
  const model::ModelConfig& config = tiny.Get().Config();
  ThreadTeam team(options.n_threads);
  const auto kernels = kernels::SelectKernels(options.isa);
  VC_CHECK(kernels.has_value(), "{}", kernels.error().message);
  model::Pass pass(tiny.Get(), **kernels, team,
                   std::max(options.prefill_chunk, decode::kMaxDraftLen + 1));
  kv::BlockPool pool(config.Kv(), size_t{64} << 20);
  auto sampler = decode::Sampler::Make(request.sampling, tiny.GetTokenizer(), config.n_context);
  VC_CHECK(sampler.has_value(), "{}", sampler.error().message);
  decode::Session session(request, {.tokenizer = &tiny.GetTokenizer(),
                                    .pool = &pool,
                                    .sampler = *std::move(sampler),
                                    .compressor = CompressorOf(request),
                                    .queries = {.n_layers = config.n_layers,
                                                .n_heads = config.n_heads,
                                                .head_dim = config.head_dim},
                                    .kernels = *kernels,
                                    .n_context = config.n_context,
                                    .tail = options.tail});
  const Status reserved = session.Reserve();
  VC_CHECK(reserved.has_value(), "{}", reserved.error().message);
  SoloResult result;
  while (!session.IsFinished()) {
    result.steps.push_back(session.NextStep());
    if (session.NextStep() == Step::kCompress) {
      const compress::Job job = session.CompressionJob();
      session.ConsumeBody(session.GetCompressor().Compress(job, team), 0.001);
    } else {
      const bool is_draft = session.NextStep() == Step::kDraft;
      const model::RowGroup group = session.Rows(options.prefill_chunk);
      model::GroupLogits logits = pass.Run({&group, 1}).front();
      std::vector<float> distorted;
      if (is_draft && options.distort_drafts) {
        const auto n_vocab = static_cast<size_t>(logits.n_vocab);
        const auto n_rows = static_cast<size_t>(logits.n_rows);
        distorted.assign(logits.data, logits.data + n_rows * n_vocab);
        for (size_t row = 0; row < n_rows; ++row) {
          options.distort_drafts(std::span(distorted).subspan(row * n_vocab, n_vocab));
        }
        logits.data = distorted.data();
      }
      // Times that make drafting worthwhile for auto, whatever this machine is doing.
      const double seconds = is_draft ? 0.3 + 0.03 * static_cast<double>(group.tokens.size() - 1)
                                      : 1 + 0.1 * static_cast<double>(group.tokens.size());
      session.Consume(logits, seconds);
    }
    decode::Output output = session.TakeOutput();
    result.tokens.insert(result.tokens.end(), output.tokens.begin(), output.tokens.end());
    result.text += output.text;
  }
  result.reason = session.GetFinishReason();
  result.error = session.GetError();
  result.stats = session.GetStats();
  ReadFullKv(session.Full(), result);
  return result;
}

// A prompt of tokens in plain text's range.
inline std::vector<TokenId> RandomPrompt(int n_tokens, uint64_t seed) {
  Rng rng(seed);
  std::vector<TokenId> prompt;
  for (int i = 0; i < n_tokens; ++i) prompt.emplace_back(rng.In(4, 255));
  return prompt;
}

// Everything a user sees, the logits of every committed row, and the truth itself (Q7, I1).
inline void ExpectIdentical(const SoloResult& drafted, const SoloResult& full) {
  ASSERT_EQ(Values(drafted.tokens), Values(full.tokens));
  ASSERT_EQ(drafted.stats.logits_hash, full.stats.logits_hash);
  ASSERT_EQ(drafted.text, full.text);
  ASSERT_EQ(drafted.reason, full.reason);
  ASSERT_EQ(drafted.error.message, full.error.message);
  ASSERT_TRUE(drafted.kv_codes == full.kv_codes) << "the full KV's codes differ";
  ASSERT_TRUE(SameBits(drafted.kv_steps, full.kv_steps));
}

}  // namespace vericache::testing_support
