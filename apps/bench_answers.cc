#include "apps/bench_answers.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "apps/prompt.h"
#include "apps/run_options.h"
#include "apps/text_file.h"
#include "kv/geometry.h"

namespace vericache::apps {
namespace {

constexpr const char* kQuestion =
    "\n\nSay in your own words what the text above asks of its reader, and quote its most "
    "important "
    "sentences.";
constexpr int kTemplateTokens = 96;  // template and question take less
constexpr int kAnswerRoom = 1024;

// n_tokens of the text from a place on; behind its end it begins again.
std::string TextFrom(const std::vector<TokenId>& text, size_t first, int n_tokens,
                     const model::Tokenizer& tokenizer) {
  std::string part;
  for (size_t i = 0; i < static_cast<size_t>(n_tokens); ++i) {
    part += tokenizer.Piece(text[(first + i) % text.size()]);
  }
  return part;
}

std::vector<std::string> PromptTexts(const PromptPlan& plan, const std::string& text,
                                     const model::Tokenizer& tokenizer) {
  if (plan.n_tokens == 0) return {text};
  const std::vector<TokenId> tokens = tokenizer.Encode(text);
  const int n_tokens = std::max(plan.n_tokens - kTemplateTokens, 1);
  std::vector<std::string> prompts;
  for (int i = 0; i < plan.n_prompts; ++i) {
    const size_t first =
        tokens.size() * static_cast<size_t>(i) / static_cast<size_t>(plan.n_prompts);
    prompts.push_back(TextFrom(tokens, first, n_tokens, tokenizer) + kQuestion);
  }
  return prompts;
}

// The full KV of every prompt and of its answer.
size_t KvBudget(const model::ModelConfig& config, const PromptPlan& plan) {
  const int n_tokens = plan.n_tokens > 0 ? plan.n_tokens + kAnswerRoom : config.n_context;
  return static_cast<size_t>(plan.n_prompts) *
         static_cast<size_t>(n_tokens + 2 * kv::kBlockTokens) *
         kv::FullKvBytesPerToken(config.Kv()) * 5 / 4;
}

nlohmann::ordered_json AnswersObject(const std::vector<Generation>& answers) {
  double decode_s = 0;
  double compress_s = 0;
  int64_t n_tokens = 0;
  int64_t n_drafted = 0;
  int64_t n_accepted = 0;
  int64_t n_rounds = 0;
  auto ids = nlohmann::ordered_json::array();
  for (const Generation& answer : answers) {
    decode_s = std::max(decode_s, answer.stats.decode_s);
    compress_s += answer.stats.compress_s;
    n_tokens += answer.stats.generated_tokens - 1;  // the first belongs to prefill
    n_drafted += answer.stats.drafted;
    n_accepted += answer.stats.accepted;
    n_rounds += answer.stats.rounds;
    auto& row = ids.emplace_back(nlohmann::ordered_json::array());
    for (const TokenId token : answer.tokens) row.push_back(token.value);
  }
  return {{"tokens_per_s", decode_s > 0 ? static_cast<double>(n_tokens) / decode_s : 0},
          {"decode_s", decode_s},
          {"compress_s", compress_s},
          {"drafted", n_drafted},
          {"accepted", n_accepted},
          {"rounds", n_rounds},
          {"kv_full_bytes", answers.front().stats.kv_full_bytes},
          {"kv_draft_bytes", answers.front().stats.kv_draft_bytes},
          {"tokens", std::move(ids)}};
}

}  // namespace

Result<std::unique_ptr<BenchAnswers>> BenchAnswers::Prefill(const BenchMachine& machine,
                                                            const PromptPlan& plan) {
  auto raw = ReadTextFile(plan.file);
  if (!raw) return tl::unexpected(raw.error());
  const auto text = CheckedText(std::move(*raw), plan.file);
  if (!text) return tl::unexpected(text.error());
  if (text->empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "{} is empty, so no prompt can be made of it",
                     plan.file);
  }
  auto engine = engine::Engine::Create({.model_path = machine.model_path,
                                        .n_threads = machine.team->Size(),
                                        .isa = machine.options.isa,
                                        .fast_kv_bytes = KvBudget(machine.model->Config(), plan)});
  if (!engine) return tl::unexpected(engine.error());
  std::unique_ptr<BenchAnswers> answers(new BenchAnswers(std::move(*engine)));
  const model::Tokenizer& tokenizer = answers->engine_->GetTokenizer();
  std::vector<decode::Request> requests;
  for (const std::string& prompt : PromptTexts(plan, *text, tokenizer)) {
    auto tokens = PromptTokens({}, prompt, machine.model_path, tokenizer);
    if (!tokens) return tl::unexpected(tokens.error());
    decode::Request& request = requests.emplace_back();
    request.prompt = *tokens;
    request.mode = decode::Mode::kFull;
    request.max_tokens = 0;
    request.keep_kv = true;
    answers->prompts_.push_back(std::move(*tokens));
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto prefilled = answers->Generate(requests);
  if (!prefilled) return tl::unexpected(prefilled.error());
  answers->prefill_s_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const Generation& one : *prefilled) answers->kept_.push_back(one.kept);
  return answers;
}

int BenchAnswers::PromptTokenCount() const {
  size_t shortest = prompts_.front().size();
  for (const auto& prompt : prompts_) shortest = std::min(shortest, prompt.size());
  return static_cast<int>(shortest);
}

Result<nlohmann::ordered_json> BenchAnswers::Answer(const AnswerPlan& plan) {
  if (plan.drafter != "kv" && plan.drafter != "ngram" && plan.drafter != "both") {
    return MakeError(ErrorCode::kInvalidArgument, "a drafter is kv, ngram or both, not '{}'",
                     plan.drafter);
  }
  RunOptions options;
  options.mode = plan.mode;
  options.drafter = plan.drafter;
  options.compressor = plan.compressor;
  options.draft_len = plan.draft_len;
  options.n_predict = plan.n_tokens;
  options.ignore_eos = true;
  options.sampling.temperature = 0;
  const auto request = MakeRequest(options);
  if (!request) return tl::unexpected(request.error());
  std::vector<decode::Request> requests;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    requests.push_back(*request);
    requests.back().prompt = prompts_[i];
    requests.back().prefix = kept_[i];
  }
  const auto answers = Generate(requests);
  if (!answers) return tl::unexpected(answers.error());
  return AnswersObject(*answers);
}

Result<std::vector<Generation>> BenchAnswers::Generate(
    const std::vector<decode::Request>& requests) {
  std::vector<std::unique_ptr<engine::Stream>> streams;
  for (const decode::Request& request : requests) {
    auto stream = engine_->Submit(request);
    if (!stream) return tl::unexpected(stream.error());
    streams.push_back(std::move(*stream));
  }
  std::vector<Generation> generations;
  for (const auto& stream : streams) {
    auto generation = Collect(*stream, {});
    if (!generation) return tl::unexpected(generation.error());
    generations.push_back(std::move(*generation));
  }
  return generations;
}

}  // namespace vericache::apps
