// A session without a model: logits come from a script that sees the tokens a row sees, so tests
// say exactly what the truth answers and what the drafter proposes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "decode/session.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/token_values.h"

namespace vericache::testing_support {

// Makes bodies of no slots and remembers what it was asked for.
class RecordingCompressor final : public compress::Compressor {
 public:
  struct Call {
    int end;
    int round;
    bool reads_draft;
    int n_tokens;  // of the source
  };
  RecordingCompressor(compress::Traits traits, std::vector<Call>* calls)
      : traits_(traits), calls_(calls) {}
  compress::Traits GetTraits() const override { return traits_; }
  std::string Spec() const override { return "recording"; }
  Result<kv::PackedKv> Compress(const compress::Job& job, ThreadTeam&) const override {
    calls_->push_back({job.end.value, job.round,
                       dynamic_cast<const kv::DraftKv*>(job.source) != nullptr,
                       job.source->TokenCount()});
    const kv::KvShape& shape = job.source->Shape();
    std::vector<kv::PackedHead> heads;
    for (int i = 0; i < shape.n_layers * shape.n_kv_heads; ++i) {
      heads.push_back(kv::PackHead(kv::HeadSlots(shape.head_dim), kernels::KvFormat::kI16));
    }
    return kv::PackedKv(shape, job.end.value, std::move(heads));
  }

 private:
  compress::Traits traits_;
  std::vector<Call>* calls_;
};

// Fills the logits of the row whose tokens, its own last, are `seen`.
using Script =
    std::function<void(std::span<const TokenId> seen, bool is_draft, std::span<float> logits)>;

struct ScriptedOptions {
  int n_vocab = 300;
  int eos = 299;
  int n_context = 4096;
  int prefill_chunk = 512;
  compress::Traits traits{.name = "recording"};
  decode::TailPolicy tail{};
  // In place of one of n_vocab bytes that ends at `eos`.
  const model::Tokenizer* tokenizer = nullptr;
  // Rows at this position are flagged as not finite: by the full KV, by the draft KV.
  int bad_full_position = -1;
  int bad_draft_position = -1;
  double draft_s = 0.3;   // of a draft pass of one row; a plain step takes 1
  double verify_s = 0.2;  // what each further row adds, as a share of that
  size_t weight_bytes = 0;
  // Of the rows of a pass, if it is shared: by its rows here.
  std::function<double(int n_rows)> share{};
};

class ScriptedSession {
 public:
  ScriptedSession(const decode::Request& request, Script script, ScriptedOptions options = {})
      : options_(options),
        script_(std::move(script)),
        bytes_(options.n_vocab, options.eos),
        pool_({.n_layers = 1, .n_kv_heads = 1, .head_dim = 32}, size_t{64} << 20),
        session_(request, MakeParts(request)) {
    VC_CHECK(session_.Reserve().has_value());
  }

  // Plays until the end. Every commit is checked against what was delivered.
  void Run() {
    while (!session_.IsFinished()) Step();
  }

  void Step() {
    using SessionStep = decode::Session::Step;
    const SessionStep step = session_.NextStep();
    if (step == SessionStep::kCompress) {
      const compress::Job job = session_.CompressionJob();
      session_.ConsumeBody(session_.GetCompressor().Compress(job, team_), 0.5);
    } else {
      RunRows(step);
    }
    decode::Output output = session_.TakeOutput();
    text += output.text;
    tokens.insert(tokens.end(), output.tokens.begin(), output.tokens.end());
    std::move(output.logprobs.begin(), output.logprobs.end(), std::back_inserter(logprobs));
  }

  decode::Session& Get() { return session_; }
  int FullKvLength() const { return session_.Full().Length(); }

  // What came out, in order.
  std::vector<TokenId> tokens;
  std::string text;
  std::vector<decode::TokenLogprobs> logprobs;
  // What happened.
  std::vector<RecordingCompressor::Call> compressions;
  std::vector<int> verify_rows;
  int n_draft_passes = 0;
  int n_draft_rows = 0;
  int highest_draft_position = -1;

 private:
  decode::SessionParts MakeParts(const decode::Request& request) {
    const model::Tokenizer& tokenizer =
        options_.tokenizer != nullptr ? *options_.tokenizer : bytes_;
    auto sampler = decode::Sampler::Make(request.sampling, tokenizer, options_.n_context);
    VC_CHECK(sampler.has_value(), "{}", sampler.error().message);
    return {.tokenizer = &tokenizer,
            .pool = &pool_,
            .sampler = *std::move(sampler),
            .compressor = std::make_unique<RecordingCompressor>(options_.traits, &compressions),
            .queries = {.n_layers = 1, .n_heads = 1, .head_dim = 32},
            .n_context = options_.n_context,
            .weight_bytes = options_.weight_bytes,
            .tail = options_.tail};
  }

  void RunRows(decode::Session::Step step) {
    const model::RowGroup group = session_.Rows(options_.prefill_chunk);
    const bool is_draft = dynamic_cast<kv::DraftKv*>(group.kv) != nullptr;
    VC_CHECK(group.kv->TokenCount() == group.first_position.value);
    // What this KV has seen: rows behind its length are forgotten, as in a pass.
    std::vector<TokenId>& seen = is_draft ? draft_seen_ : full_seen_;
    const auto first = static_cast<size_t>(group.first_position.value);
    if (is_draft && seen.size() < first) {  // exact rows copied from the full KV
      const auto& committed = session_.Tokens();
      seen.insert(seen.end(), committed.begin() + static_cast<ptrdiff_t>(seen.size()),
                  committed.begin() + static_cast<ptrdiff_t>(first));
    }
    seen.resize(first);
    const size_t n_rows = group.tokens.size();
    const size_t n_logits = group.logits == model::LogitRows::kAll    ? n_rows
                            : group.logits == model::LogitRows::kLast ? 1
                                                                      : 0;
    std::vector<float> logits(n_logits * static_cast<size_t>(options_.n_vocab));
    std::vector<uint8_t> is_finite(n_logits, 1);
    bool are_all_finite = true;
    for (size_t row = 0; row < n_rows; ++row) {
      seen.push_back(group.tokens[row]);
      const int bad = is_draft ? options_.bad_draft_position : options_.bad_full_position;
      const bool is_bad = static_cast<int>(seen.size()) - 1 == bad;
      are_all_finite = are_all_finite && !is_bad;
      if (row + n_logits < n_rows) continue;
      const size_t i = row + n_logits - n_rows;
      script_(seen, is_draft,
              std::span(logits).subspan(i * static_cast<size_t>(options_.n_vocab),
                                        static_cast<size_t>(options_.n_vocab)));
      if (is_bad) is_finite[i] = 0;
    }
    if (is_draft) {
      ++n_draft_passes;
      n_draft_rows += static_cast<int>(n_rows);
      highest_draft_position =
          std::max(highest_draft_position, group.first_position.value + static_cast<int>(n_rows));
    } else if (step != decode::Session::Step::kPrefill) {
      verify_rows.push_back(static_cast<int>(n_rows));
    }
    const double seconds = (is_draft ? options_.draft_s : 1) *
                           (1 + options_.verify_s * static_cast<double>(n_rows - 1));
    session_.Consume({.n_rows = static_cast<int>(n_logits),
                      .n_vocab = options_.n_vocab,
                      .data = logits.data(),
                      .is_finite = is_finite,
                      .are_all_rows_finite = are_all_finite},
                     seconds, options_.share ? options_.share(static_cast<int>(n_rows)) : 1.0);
    if (!is_draft) draft_seen_.resize(std::min(draft_seen_.size(), first));
  }

  ScriptedOptions options_;
  Script script_;
  ByteTokenizer bytes_;
  kv::BlockPool pool_;
  ThreadTeam team_{1};
  std::vector<TokenId> full_seen_;
  std::vector<TokenId> draft_seen_;
  decode::Session session_;
};

// ---- comparing
// -----------------------------------------------------------------------------------

// A prompt that hardly repeats itself, greedy, with drafts of 7.
inline decode::Request MakeRequest(int n_prompt, int max_tokens) {
  decode::Request request;
  for (int i = 0; i < n_prompt; ++i) request.prompt.emplace_back((i * 37) % 200);
  request.max_tokens = max_tokens;
  request.draft_len = 7;
  request.hash_logits = true;
  return request;
}

// Plays the request plainly and drafted; both must agree in everything a user sees.
inline void ExpectSameAsFull(decode::Request request, const Script& script,
                             const ScriptedOptions& options = {}) {
  decode::Request plain = request;
  plain.mode = decode::Mode::kFull;
  ScriptedSession full(plain, script, options);
  full.Run();
  ScriptedSession drafted(request, script, options);
  drafted.Run();
  ASSERT_EQ(Values(drafted.tokens), Values(full.tokens));
  ASSERT_EQ(drafted.text, full.text);
  ASSERT_EQ(drafted.Get().GetFinishReason(), full.Get().GetFinishReason());
  ASSERT_EQ(drafted.Get().GetStats().logits_hash, full.Get().GetStats().logits_hash);
  ASSERT_EQ(drafted.Get().GetError().message, full.Get().GetError().message);
  ASSERT_EQ(drafted.FullKvLength(), full.FullKvLength());
  ASSERT_EQ(drafted.Get().GetStats().generated_tokens, static_cast<int>(full.tokens.size()));
}

// ---- scripts ------------------------------------------------------------------------------------

inline uint64_t HashTokens(std::span<const TokenId> tokens) {
  uint64_t h = 0x243f6a8885a308d3u;
  for (const TokenId token : tokens) {
    h = (h ^ static_cast<uint64_t>(token.value)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h;
}

// Pseudo-random logits over the first n_used tokens that depend on everything seen.
inline void FillHashedLogits(std::span<const TokenId> seen, int n_used, std::span<float> logits) {
  uint64_t h = HashTokens(seen);
  for (size_t i = 0; i < logits.size(); ++i) {
    h = h * 6364136223846793005u + 1442695040888963407u;
    const auto unit = static_cast<float>(h >> 40) * 0x1p-24f;
    logits[i] = i < static_cast<size_t>(n_used) ? 4 * unit : -20.0f;
  }
}

// The likeliest token is `token`, clearly.
inline void Prefer(std::span<float> logits, int token) {
  logits[static_cast<size_t>(token)] = 30.0f;
}

// How a drafter differs from the truth.
enum class DraftKind { kPerfect, kSometimes, kAlwaysWrong, kConstant, kRandom, kEndsText };

// The truth is hashed logits; the drafter distorts them.
inline Script HashedScript(DraftKind kind, int n_used = 250, int eos = 299) {
  return [=](std::span<const TokenId> seen, bool is_draft, std::span<float> logits) {
    FillHashedLogits(seen, n_used, logits);
    if (!is_draft) return;
    const TokenId truth = decode::ArgMax(logits);
    const uint64_t h = HashTokens(seen) >> 7;
    switch (kind) {
      case DraftKind::kPerfect:
        return;
      case DraftKind::kSometimes:
        if (h % 4 == 0) Prefer(logits, static_cast<int>((h >> 8) % static_cast<uint64_t>(n_used)));
        return;
      case DraftKind::kAlwaysWrong:
        return Prefer(logits, (truth.value + 1) % n_used);
      case DraftKind::kConstant:
        return Prefer(logits, 7);
      case DraftKind::kRandom:
        return Prefer(logits, static_cast<int>((h >> 8) % static_cast<uint64_t>(n_used)));
      case DraftKind::kEndsText:
        return Prefer(logits, eos);
    }
  };
}

}  // namespace vericache::testing_support
