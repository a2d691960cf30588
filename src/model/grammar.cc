#include "model/grammar.h"

#include <llama-grammar.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "model/llama_log.h"
#include "model/text_cuts.h"

namespace vericache::model {
namespace {

// libllama parses groups and looks for left recursion by recursion of its own; these keep it within
// a thread's stack. Grammars made from large JSON schemas have a few hundred rules.
constexpr size_t kMaxGrammarBytes = size_t{1} << 20;
constexpr int kMaxGroupDepth = 200;
constexpr size_t kMaxRules = 10'000;

template <typename... Args>
tl::unexpected<Error> Refuse(fmt::format_string<Args...> format, Args&&... args) {
  return MakeError(ErrorCode::kInvalidArgument, "the grammar {}",
                   fmt::format(format, std::forward<Args>(args)...));
}

// "3, column 7": a place as an editor shows it.
std::string Place(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto n_lines = std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0
  return fmt::format("line {}, column {}", n_lines + 1, offset - line_start + 1);
}

// Offset behind a literal, class, token name or comment that begins at `offset`.
size_t SkipQuoted(std::string_view text, size_t offset, char end) {
  for (++offset; offset < text.size() && text[offset] != end; ++offset) {
    if (text[offset] == '\\' && end != '>' && end != '\n') ++offset;
  }
  return std::min(offset + 1, text.size());
}

// A repetition {5,2}, which libllama would expand without end.
bool IsBackwards(std::string_view text) {
  const auto read = [&text](char before) {
    uint64_t count = 0;
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with(before)) return std::optional<uint64_t>{};
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n", 1), text.size()));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return error == std::errc{} ? std::optional(count) : std::nullopt;
  };
  const std::optional<uint64_t> least = read('{');
  const std::optional<uint64_t> most = read(',');
  return least && most && *most < *least;
}

// What would overflow libllama's stack or memory. The text may be anything.
Status CheckNesting(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '[' || c == '<' || c == '#') {
      i = SkipQuoted(text, i, c == '"' ? '"' : c == '[' ? ']' : c == '<' ? '>' : '\n');
      continue;
    }
    if (c == '(' && ++depth > kMaxGroupDepth) {
      return MakeError(ErrorCode::kUnsupported, "the grammar nests groups deeper than {} at {}",
                       kMaxGroupDepth, Place(text, i));
    }
    if (c == ')') --depth;
    if (c == '{' && IsBackwards(text.substr(i))) {
      return Refuse("is wrong at {}: a repetition of at most fewer than at least", Place(text, i));
    }
    ++i;
  }
  return {};
}

size_t SkipSpace(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && std::string_view("# \t\r\n").find(text[i]) != std::string_view::npos) {
    i = text[i] == '#' ? std::min(text.find('\n', i), text.size()) : i + 1;
  }
  return i;
}

// libllama's messages end with all the text from where it stopped; we say the place.
Status ParseError(std::string_view text, std::string_view message) {
  const size_t at = message.find(" at ");
  const bool has_rest = at != std::string_view::npos && text.ends_with(message.substr(at + 4));
  if (!has_rest) return Refuse("is wrong: {}", message);
  const size_t offset = text.size() - (message.size() - at - 4);
  return Refuse("is wrong at {}: {}", Place(text, offset), message.substr(0, at));
}

Status CheckRules(const llama_grammar_parser& parser) {
  if (parser.rules.size() > kMaxRules) {
    return MakeError(ErrorCode::kUnsupported,
                     "the grammar makes {} rules; {} are the most (a repetition {{n}} makes n)",
                     parser.rules.size(), kMaxRules);
  }
  for (const llama_grammar_rule& rule : parser.rules) {
    for (const llama_grammar_element& element : rule) {
      if (element.type == LLAMA_GRETYPE_TOKEN || element.type == LLAMA_GRETYPE_TOKEN_NOT) {
        return MakeError(
            ErrorCode::kUnsupported,
            "the grammar names a token (<...>); only grammars over text are supported");
      }
    }
  }
  for (const auto& [name, id] : parser.symbol_ids) {
    if (id >= parser.rules.size() || parser.rules[id].empty()) {
      return Refuse("uses the rule \"{}\" without saying what it is", name);
    }
  }
  if (!parser.symbol_ids.contains("root")) {
    return Refuse("has no rule \"root\", where answers start");
  }
  return {};
}

// What libllama's own entry does, which prints its errors instead of returning them.
Status Check(const std::string& text, const llama_vocab* vocab) {
  if (text.size() > kMaxGrammarBytes) {
    return MakeError(ErrorCode::kUnsupported, "the grammar has {} bytes; {} are the most",
                     text.size(), kMaxGrammarBytes);
  }
  if (const size_t zero = text.find('\0'); zero != std::string::npos) {
    return Refuse("is wrong at {}: a zero byte", Place(text, zero));
  }
  if (const size_t valid = ValidUtf8Prefix(text); valid < text.size()) {
    return Refuse("is wrong at {}: not UTF-8", Place(text, valid));
  }
  VC_RETURN_IF_ERROR(CheckNesting(text));
  llama_grammar_parser parser(vocab);
  try {
    const char* rest = text.c_str() + SkipSpace(text);
    while (*rest != '\0') rest = parser.parse_rule(rest);
  } catch (const std::exception& error) {
    return ParseError(text, error.what());
  }
  return CheckRules(parser);
}

// Whether some more bytes could make `bytes` one character: those that can, can be filled with the
// least or with the greatest continuation byte.
bool BeginsCharacter(std::string_view bytes) {
  for (const char filling : {'\x80', '\xbf'}) {
    std::string filled(bytes);
    while (filled.size() < 4 && ValidUtf8Prefix(filled) == 0) filled += filling;
    if (ValidUtf8Prefix(filled) == filled.size()) return true;
  }
  return false;
}

// What stands for a first character where there is none to look at.
constexpr int32_t kNoText = -1;
constexpr int32_t kUndecided = -2;  // an end of generation, or not a whole character

int32_t FirstCharacter(TokenId token, const Tokenizer& tokenizer) {
  if (tokenizer.IsEndOfGeneration(token)) return kUndecided;
  const std::string piece = tokenizer.Piece(token);
  if (piece.empty()) return kNoText;
  const auto lead = static_cast<uint8_t>(piece[0]);
  if (lead < 0x80) return lead;
  const size_t n_bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  const std::string_view bytes = std::string_view(piece).substr(0, n_bytes);
  if (bytes.size() < n_bytes || ValidUtf8Prefix(bytes) < n_bytes) return kUndecided;
  uint32_t character = lead & (0x7fu >> n_bytes);
  for (const char c : bytes.substr(1))
    character = character << 6 | (static_cast<uint8_t>(c) & 0x3fu);
  return static_cast<int32_t>(character);
}

// Whether a class or character of a rule, such as [^a-z_], matches.
bool Matches(const llama_grammar_element* element, uint32_t character) {
  const bool is_negated = element->type == LLAMA_GRETYPE_CHAR_NOT;
  bool is_listed = false;
  do {
    if (element->type == LLAMA_GRETYPE_CHAR_ANY) {
      is_listed = true;
      ++element;
    } else if (element[1].type == LLAMA_GRETYPE_CHAR_RNG_UPPER) {
      is_listed = is_listed || (element->value <= character && character <= element[1].value);
      element += 2;
    } else {
      is_listed = is_listed || element->value == character;
      ++element;
    }
  } while (element->type == LLAMA_GRETYPE_CHAR_ALT);
  return is_listed != is_negated;
}

}  // namespace

void Grammar::Deleter::operator()(llama_grammar* grammar) const {
  llama_grammar_free_impl(grammar);
}

Result<Grammar> Grammar::Parse(const std::string& gbnf, const Tokenizer& tokenizer) {
  const llama_vocab* vocab = tokenizer.Vocab();
  VC_CHECK(vocab != nullptr, "a grammar needs libllama's vocabulary");
  VC_RETURN_IF_ERROR(Check(gbnf, vocab));
  const LlamaErrors errors;
  State state(llama_grammar_init_impl(vocab, gbnf.c_str(), "root", false, nullptr, 0, nullptr, 0));
  if (state == nullptr) return Refuse("is refused: {}", errors.Text("no reason given"));
  auto first = std::make_shared<std::vector<int32_t>>();
  for (int id = 0; id < tokenizer.VocabSize(); ++id) {
    first->push_back(FirstCharacter(TokenId{id}, tokenizer));
  }
  return Grammar(std::move(state), &tokenizer, std::move(first));
}

Grammar Grammar::Clone() const {
  Grammar clone(State(state_ ? llama_grammar_clone_impl(*state_) : nullptr), tokenizer_, first_);
  clone.begun_ = begun_;
  return clone;
}

bool Grammar::IsText(TokenId token) const {
  if (tokenizer_->IsEndOfGeneration(token)) return begun_.empty();
  const std::string piece = tokenizer_->Piece(token);
  if (piece.empty()) return false;
  const std::string text = begun_ + piece;
  const size_t n_whole = ValidUtf8Prefix(text);
  return n_whole == text.size() || BeginsCharacter(std::string_view(text).substr(n_whole));
}

bool Grammar::MayStartWith(uint32_t character) const {
  return std::ranges::any_of(state_->stacks, [character](const llama_grammar_stack& stack) {
    return !stack.empty() && Matches(stack.back(), character);
  });
}

std::vector<size_t> Grammar::PlausibleOf(std::span<const llama_token_data> candidates) const {
  enum : uint8_t { kNotAsked, kYes, kNo };
  std::array<uint8_t, 128> answers{};  // for ASCII, with which most tokens start
  const auto may_start = [&](uint32_t character) {
    if (character >= answers.size()) return MayStartWith(character);
    uint8_t& answer = answers[character];
    if (answer == kNotAsked) answer = MayStartWith(character) ? kYes : kNo;
    return answer == kYes;
  };
  std::vector<size_t> plausible;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const int32_t first = (*first_)[static_cast<size_t>(candidates[i].id)];
    if (first == kNoText) continue;
    if (first == kUndecided || may_start(static_cast<uint32_t>(first))) {
      plausible.push_back(i);
    }
  }
  return plausible;
}

// libllama decodes the text of every token it is asked about, which takes longer than a small
// model's pass: it is asked about the plausible ones only.
void Grammar::Forbid(std::span<llama_token_data> candidates) {
  std::vector<llama_token_data> asked;
  std::vector<size_t> plausible;
  if (state_) plausible = PlausibleOf(candidates);
  for (const size_t i : plausible) asked.push_back(candidates[i]);
  llama_token_data_array array = {asked.data(), asked.size(), -1, false};
  if (!asked.empty()) llama_grammar_apply_impl(*state_, &array);
  for (llama_token_data& candidate : candidates) candidate.logit = -INFINITY;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (asked[i].logit == -INFINITY || !IsText(TokenId{asked[i].id})) continue;
    candidates[plausible[i]].logit = asked[i].logit;
  }
}

// An end-of-generation token leaves the state as it is: only such tokens can follow it.
void Grammar::Accept(TokenId token) {
  if (!state_) return;
  try {
    llama_grammar_accept_impl(*state_, token.value);
  } catch (const std::exception&) {  // no way on from here
    state_.reset();
  }
  begun_ += tokenizer_->Piece(token);
  begun_.erase(0, ValidUtf8Prefix(begun_));
}

}  // namespace vericache::model
