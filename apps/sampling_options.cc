#include "apps/sampling_options.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "apps/flags.h"
#include "apps/text_file.h"
#include "model/json_schema.h"

namespace vericache::apps {
namespace {

constexpr int kTokensMax = 1 << 24;  // longer than any context

// What narrows the choice.
void AddNarrowing(CLI::App& app, SamplingOptions& options) {
  AddNumber(app, {"--temp", "T", "temperature; 0 takes the likeliest token"}, {0, 100},
            options.temperature);
  AddInt(app, {"--top-k", "N", "keeps the N likeliest tokens; 0 keeps all"}, {0, kTokensMax},
         options.top_k);
  AddNumber(app, {"--top-p", "P", "keeps the likeliest tokens up to this sum; 1 keeps all"},
            {1e-6, 1}, options.top_p);
  AddNumber(app, {"--min-p", "P", "drops tokens below this share of the likeliest; 0 drops none"},
            {0, 1}, options.min_p);
  AddNumber(app,
            {"--typical-p,--typical", "P",
             "keeps tokens about as surprising as expected, up to this sum; 1 keeps all"},
            {1e-6, 1}, options.typical_p);
  AddNumber(app,
            {"--top-nsigma,--top-n-sigma", "N",
             "keeps logits within N standard deviations of the highest; -1 keeps all"},
            {-1, 1000}, options.top_n_sigma);
  AddNumber(app,
            {"--xtc-probability", "P", "how often XTC leaves out the likeliest tokens; 0 is off"},
            {0, 1}, options.xtc_probability);
  AddNumber(app, {"--xtc-threshold", "P", "what XTC calls likely; above 0.5 is off"}, {0, 1},
            options.xtc_threshold);
  AddInt(app, {"--mirostat", "N", "refused: it would not survive drafting"}, {0, 2},
         options.mirostat);
  AddText(app, {"--seed", "N", "of the sampler; -1 draws one and reports it"}, options.seed);
}

void AddPenalties(CLI::App& app, SamplingOptions& options) {
  AddNumber(app, {"--repeat-penalty", "X", "divides the logits of recent tokens; 1 is off"},
            {0.01, 100}, options.repeat_penalty);
  AddInt(app, {"--repeat-last-n", "N", "tokens that count as recent; -1 the context"},
         {-1, kTokensMax}, options.repeat_last_n);
  AddNumber(app, {"--presence-penalty", "X", "subtracted from recent tokens; 0 is off"},
            {-100, 100}, options.presence_penalty);
  AddNumber(app, {"--frequency-penalty", "X", "subtracted once per recent use; 0 is off"},
            {-100, 100}, options.frequency_penalty);
  AddNumber(
      app,
      {"--dry-multiplier", "X", "strength of DRY, which is against repeated sequences; 0 is off"},
      {0, 100}, options.dry_multiplier);
  AddNumber(app, {"--dry-base", "X", "growth of DRY with the length of the sequence"}, {1, 100},
            options.dry_base);
  AddInt(app, {"--dry-allowed-length", "N", "longest repeated sequence that DRY lets pass"},
         {1, kTokensMax}, options.dry_allowed_length);
  AddInt(app, {"--dry-penalty-last-n", "N", "tokens that DRY looks at; -1 the context"},
         {-1, kTokensMax}, options.dry_last_n);
  AddRepeated(app,
              {"--dry-sequence-breaker", "TEXT",
               "where DRY's sequences end, in place of newline : \" *; none for none; repeatable"},
              options.dry_breakers);
  AddRepeated(
      app,
      {"--logit-bias", "TOKEN+X", "adds X to (TOKEN-X: takes from) a token's logit; repeatable"},
      options.logit_bias);
}

void AddGrammars(CLI::App& app, SamplingOptions& options) {
  AddOptionalText(app, {"--grammar", "GBNF", "a grammar that the answer keeps to"},
                  options.grammar);
  AddOptionalText(app, {"--grammar-file", "FILE", "the same, from a file"}, options.grammar_file);
  AddOptionalText(app,
                  {"-j,--json-schema", "JSON", "the answer is JSON of this schema; {} is any JSON"},
                  options.json_schema);
  AddOptionalText(app, {"--json-schema-file", "FILE", "the same, from a file"},
                  options.json_schema_file);
}

Result<uint64_t> ParseSeed(const std::string& text) {
  if (text == "-1") return std::random_device{}();  // 32 bits: short enough to type again
  const auto seed = ParseUnsigned(text);
  if (!seed) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--seed takes a whole number from 0 to {}, or -1 for a random one, not '{}'",
                     std::numeric_limits<uint64_t>::max(), text);
  }
  return *seed;
}

// "15043+1.5", "15043-inf": as llama.cpp writes it.
Result<std::pair<TokenId, float>> ParseLogitBias(const std::string& text) {
  const size_t sign = text.find_first_of("+-");
  const auto token = ParseInteger(std::string_view(text).substr(0, sign));
  const double size = sign == std::string::npos
                          ? -1.0
                          : ParseNumber(std::string_view(text).substr(sign + 1)).value_or(-1.0);
  if (!token || *token < 0 || *token > std::numeric_limits<int32_t>::max() || !(size >= 0)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--logit-bias takes a token id, a sign and a number, such as 15043+1 or "
                     "15043-inf, not '{}'",
                     text);
  }
  const auto bias = static_cast<float>(size);
  return std::pair{TokenId{static_cast<int32_t>(*token)}, text[sign] == '-' ? -bias : bias};
}

// The grammar that one of four options gives, or "".
Result<std::string> ReadGrammar(const SamplingOptions& options) {
  const std::pair<const char*, const std::optional<std::string>*> sources[] = {
      {"--grammar", &options.grammar},
      {"--grammar-file", &options.grammar_file},
      {"--json-schema", &options.json_schema},
      {"--json-schema-file", &options.json_schema_file}};
  const char* given = nullptr;
  for (const auto& [name, value] : sources) {
    if (!*value) continue;
    if (given != nullptr) {
      return MakeError(ErrorCode::kInvalidArgument, "{} and {} exclude each other; leave one out",
                       given, name);
    }
    given = name;
  }
  if (given == nullptr) return std::string();
  std::string text = options.grammar.value_or(options.json_schema.value_or(""));
  if (options.grammar_file || options.json_schema_file) {
    auto read =
        ReadTextFile(options.grammar_file ? *options.grammar_file : *options.json_schema_file);
    VC_RETURN_IF_ERROR(read);
    text = *std::move(read);
  }
  if (options.json_schema || options.json_schema_file) return model::GrammarFromJsonSchema(text);
  if (text.empty()) return MakeError(ErrorCode::kInvalidArgument, "{} is empty", given);
  return text;
}

model::FilterParams PlainFilters(const SamplingOptions& options) {
  return {.top_k = options.top_k,
          .top_p = options.top_p,
          .min_p = options.min_p,
          .typical_p = options.typical_p,
          .top_n_sigma = std::max(options.top_n_sigma, 0.0f),
          .repeat_penalty = options.repeat_penalty,
          .presence_penalty = options.presence_penalty,
          .frequency_penalty = options.frequency_penalty,
          .penalty_last_n = options.repeat_last_n,
          .dry_multiplier = options.dry_multiplier,
          .dry_base = options.dry_base,
          .dry_allowed_length = options.dry_allowed_length,
          .dry_last_n = options.dry_last_n};
}

}  // namespace

void AddSamplingOptions(CLI::App& app, SamplingOptions& options) {
  AddNarrowing(app, options);
  AddPenalties(app, options);
  AddGrammars(app, options);
}

Result<decode::SamplingParams> MakeSampling(const SamplingOptions& options) {
  if (options.mirostat != 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--mirostat {} is refused: its target moves with the probability of every "
                     "token drawn, which a draft only guesses at; --top-nsigma and --min-p adapt "
                     "to each distribution without such a memory",
                     options.mirostat);
  }
  const auto seed = ParseSeed(options.seed);
  VC_RETURN_IF_ERROR(seed);
  decode::SamplingParams sampling{
      .temperature = options.temperature,
      .seed = *seed,
      .filters = PlainFilters(options),
      .xtc = {.probability = options.xtc_probability, .threshold = options.xtc_threshold}};
  model::FilterParams& filters = sampling.filters;
  if (!options.dry_breakers.empty()) filters.dry_breakers = options.dry_breakers;
  std::erase(filters.dry_breakers, "none");
  for (const std::string& text : options.logit_bias) {
    const auto bias = ParseLogitBias(text);
    VC_RETURN_IF_ERROR(bias);
    filters.logit_bias.push_back(*bias);
  }
  auto grammar = ReadGrammar(options);
  VC_RETURN_IF_ERROR(grammar);
  filters.grammar = *std::move(grammar);
  return sampling;
}

}  // namespace vericache::apps
