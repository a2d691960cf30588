#include "apps/bench_commands.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "apps/bench_answers.h"
#include "apps/bench_breakdown.h"
#include "apps/flags.h"
#include "apps/json_report.h"
#include "apps/output_file.h"
#include "apps/row_timing.h"

namespace vericache::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxPassRows = 256;  // as the engine prefills

// The words of one line, taken from the front.
class Words {
 public:
  explicit Words(const std::string& line) : stream_(line) {}
  // Empty if there is none left.
  std::string Next() {
    std::string word;
    stream_ >> word;
    return word;
  }
  Result<int> NextInt(const char* what, int min) {
    const std::string word = Next();
    const auto number = ParseInteger(word);
    if (!number || *number < min || *number > std::numeric_limits<int>::max()) {
      return MakeError(ErrorCode::kInvalidArgument, "{} is a whole number from {} up, not '{}'",
                       what, min, word);
    }
    return static_cast<int>(*number);
  }

 private:
  std::istringstream stream_;
};

// What a pass is to do.
struct PassWords {
  int n_rows = 0;
  model::LogitRows logits = model::LogitRows::kLast;
};

class BenchCommands {
 public:
  explicit BenchCommands(BenchMachine& machine) : machine_(machine) {}

  Result<Json> Answer(const std::string& line) {
    Words words(line);
    const std::string command = words.Next();
    if (command == "open") return Open(words);
    if (command == "depth") return Depth(words);
    if (command == "pass") return Pass(words);
    if (command == "parts") return Parts(words);
    if (command == "ceilings") return Limits();
    if (command == "prompts") return Prompts(words);
    if (command == "answer") return AnswerPrompts(words);
    return MakeError(ErrorCode::kInvalidArgument,
                     "no command '{}'; there are open, depth, pass, parts, ceilings, prompts, "
                     "answer",
                     command);
  }

 private:
  Result<Json> Open(Words& words) {
    const auto n_sequences = words.NextInt("the number of sequences", 1);
    if (!n_sequences) return tl::unexpected(n_sequences.error());
    const auto n_tokens = words.NextInt("the tokens of a sequence", 1);
    if (!n_tokens) return tl::unexpected(n_tokens.error());
    auto made = TimedSequences::Create(*machine_.model, *machine_.kernels, *machine_.team,
                                       {*n_sequences, *n_tokens, kMaxPassRows});
    if (!made) return tl::unexpected(made.error());
    if (sequences_) VC_RETURN_IF_ERROR((*made)->TakeTokens(*sequences_));
    sequences_ = std::move(*made);
    return Json::object();
  }

  Result<Json> Depth(Words& words) {
    const auto depth = words.NextInt("the depth", 0);
    if (!depth) return tl::unexpected(depth.error());
    VC_RETURN_IF_ERROR(CheckOpen());
    const auto begin = std::chrono::steady_clock::now();
    VC_RETURN_IF_ERROR(sequences_->SetDepth(*depth));
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    return Json{{"seconds", passed.count()}};
  }

  Result<Json> Pass(Words& words) {
    const auto pass = NextPass(words);
    if (!pass) return tl::unexpected(pass.error());
    const double seconds = sequences_->Time(pass->n_rows, pass->logits).seconds;
    const PassCost cost = sequences_->Cost(pass->n_rows, pass->logits);
    return Json{{"seconds", seconds},
                {"weight_bytes", cost.weight_bytes},
                {"kv_bytes", cost.kv_bytes},
                {"matrix_macs", cost.matrix_macs},
                {"attention_macs", cost.attention_macs}};
  }

  Result<Json> Parts(Words& words) {
    const auto pass = NextPass(words);
    if (!pass) return tl::unexpected(pass.error());
    if (!profiler_) {
      auto made = StepProfiler::Make(machine_);
      if (!made) return tl::unexpected(made.error());
      profiler_ = std::move(*made);
    }
    const Breakdown breakdown = profiler_->Measure(*sequences_, pass->n_rows, pass->logits, 1);
    return Json{{"seconds", breakdown.seconds}, {"parts_ms", BreakdownObject(breakdown)}};
  }

  Result<Json> Limits() {
    const Ceilings ceilings = MeasureCeilings(machine_);
    return Json{{"read_bytes_per_s", ceilings.read_bytes_per_s},
                {"macs_per_s", ceilings.macs_per_s}};
  }

  Result<Json> Prompts(Words& words) {
    const auto count = words.NextInt("the number of prompts", 1);
    if (!count) return tl::unexpected(count.error());
    const auto n_tokens = words.NextInt("the tokens of a prompt", 0);
    if (!n_tokens) return tl::unexpected(n_tokens.error());
    answers_.reset();
    auto made = BenchAnswers::Prefill(machine_, {*count, *n_tokens, words.Next()});
    if (!made) return tl::unexpected(made.error());
    answers_ = std::move(*made);
    return Json{{"prompt_tokens", answers_->PromptTokenCount()},
                {"seconds", answers_->PrefillSeconds()}};
  }

  Result<Json> AnswerPrompts(Words& words) {
    AnswerPlan plan;
    plan.mode = words.Next();
    plan.drafter = words.Next();
    plan.compressor = words.Next();
    plan.draft_len = words.Next();
    const auto n_tokens = words.NextInt("the tokens of an answer", 2);
    if (!n_tokens) return tl::unexpected(n_tokens.error());
    plan.n_tokens = *n_tokens;
    if (!answers_) {
      return MakeError(ErrorCode::kInvalidArgument, "there are no prompts to answer yet");
    }
    return answers_->Answer(plan);
  }

  Result<PassWords> NextPass(Words& words) {
    const auto n_rows = words.NextInt("the number of rows", 1);
    if (!n_rows) return tl::unexpected(n_rows.error());
    const std::string logits = words.Next();
    if (logits != "last" && logits != "all") {
      return MakeError(ErrorCode::kInvalidArgument, "logits are of the last row or all, not '{}'",
                       logits);
    }
    VC_RETURN_IF_ERROR(CheckOpen());
    if (*n_rows > sequences_->RowRoom()) {
      return MakeError(ErrorCode::kInvalidArgument, "{} rows, but there is room for {}", *n_rows,
                       sequences_->RowRoom());
    }
    return PassWords{*n_rows, logits == "all" ? model::LogitRows::kAll : model::LogitRows::kLast};
  }

  Status CheckOpen() const {
    if (sequences_) return {};
    return MakeError(ErrorCode::kInvalidArgument, "no sequence is open");
  }

  BenchMachine& machine_;
  std::unique_ptr<TimedSequences> sequences_;
  std::optional<StepProfiler> profiler_;
  std::unique_ptr<BenchAnswers> answers_;
};

Status Say(const Json& object) { return Print(stdout, DumpJson(object) + "\n"); }

}  // namespace

Status AnswerBenchCommands(BenchMachine& machine) {
  BenchCommands commands(machine);
  VC_RETURN_IF_ERROR(Say(DescribeMachine(machine)));
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = commands.Answer(line);
    VC_RETURN_IF_ERROR(Say(answer ? *answer : Json{{"error", answer.error().message}}));
  }
  return {};
}

}  // namespace vericache::apps
