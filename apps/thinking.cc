#include "apps/thinking.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace vericache::apps {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";
constexpr std::string_view kSpaces = " \t\r\n";

}  // namespace

std::string ThinkingStyle::Apply(std::string_view text) {
  std::string out;
  if (is_open_ && !text.empty()) {
    is_open_ = false;
    state_ = State::kThinking;
    out += kDim;
  }
  for (const char c : text) Step(c, out);
  return out;
}

void ThinkingStyle::Step(char c, std::string& out) {
  out += c;
  if (state_ == State::kAnswer) return;
  const bool is_thinking = state_ == State::kThinking;
  const std::string_view tag = is_thinking ? kClose : kOpen;
  if (c == tag[n_matched_]) {
    if (++n_matched_ < tag.size()) return;
    n_matched_ = 0;
    state_ = is_thinking ? State::kAnswer : State::kThinking;
    out += is_thinking ? kPlain : kDim;
  } else if (is_thinking) {
    n_matched_ = c == tag[0] ? 1 : 0;  // '<' occurs in the tag only there
  } else if (n_matched_ > 0 || kSpaces.find(c) == std::string_view::npos) {
    state_ = State::kAnswer;
  }
}

std::string ThinkingStyle::End() {
  const bool is_dim = state_ == State::kThinking;
  state_ = State::kAnswer;
  return is_dim ? std::string(kPlain) : std::string();
}

bool EndsInThinking(std::span<const TokenId> prompt, const model::Tokenizer& tokenizer) {
  constexpr size_t kTail = 16;  // more tokens than the tag and a few line ends can be
  std::string text;
  for (const TokenId token : prompt.last(std::min(kTail, prompt.size())))
    text += tokenizer.Piece(token);
  text.erase(text.find_last_not_of(kSpaces) + 1);
  return text.ends_with(kOpen);
}

bool MayStyleOutput() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string_view(text == nullptr ? "" : text);
  };
  return isatty(STDOUT_FILENO) == 1 && value("NO_COLOR").empty() && value("TERM") != "dumb";
}

}  // namespace vericache::apps
