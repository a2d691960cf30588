// Several prompts answered together by the engine, in any mode: what a user of it would see, with
// the prefill done once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench_machine.h"
#include "apps/generation.h"
#include "base/result.h"
#include "decode/request.h"
#include "engine/engine.h"

namespace vericache::apps {

struct PromptPlan {
  int n_prompts = 1;
  int n_tokens = 0;  // of each, at most; 0: one prompt, the text as it is
  std::string file;
};

struct AnswerPlan {
  std::string mode;
  std::string drafter;
  std::string compressor;
  std::string draft_len;
  int n_tokens = 0;
};

class BenchAnswers {
 public:
  // Every prompt begins at another place of the text and ends with the same question.
  // Errors: those of files, of the model, and of the engine's budget and context.
  static Result<std::unique_ptr<BenchAnswers>> Prefill(const BenchMachine& machine,
                                                       const PromptPlan& plan);

  // Tokens of the shortest prompt, and the time all took.
  int PromptTokenCount() const;
  double PrefillSeconds() const { return prefill_s_; }

  // All prompts at once, greedily, exactly n_tokens each. Tokens per second count from the first
  // token of an answer to the last, compression included; decode_s is of the slowest answer.
  // Errors: kInvalidArgument for a word of the plan; those of the engine.
  Result<nlohmann::ordered_json> Answer(const AnswerPlan& plan);

 private:
  explicit BenchAnswers(std::unique_ptr<engine::Engine> engine) : engine_(std::move(engine)) {}
  // Submits them all, then reads them one after the other.
  Result<std::vector<Generation>> Generate(const std::vector<decode::Request>& requests);

  std::unique_ptr<engine::Engine> engine_;
  std::vector<std::vector<TokenId>> prompts_;
  std::vector<std::shared_ptr<const decode::KeptKv>> kept_;
  double prefill_s_ = 0;
};

}  // namespace vericache::apps
