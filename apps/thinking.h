// What a reasoning model thinks before it answers: the text between <think> and </think> at the
// start, shown dimmed on a terminal.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "model/tokenizer.h"

namespace vericache::apps {

// Puts the terminal's codes around the thinking of one answer, piece by piece; adds nothing else
// and holds nothing back. Tags behind the start are text: an answer may be about them.
class ThinkingStyle {
 public:
  // is_open: the prompt ends inside the thinking, because the template wrote the opening tag.
  explicit ThinkingStyle(bool is_open) : is_open_(is_open) {}

  std::string Apply(std::string_view text);
  // What leaves the terminal as it was, if the answer ends in its thinking.
  std::string End();

 private:
  enum class State : uint8_t { kStart, kThinking, kAnswer };

  void Step(char c, std::string& out);

  bool is_open_;
  State state_ = State::kStart;
  size_t n_matched_ = 0;  // characters of the tag looked for
};

// Whether the generation begins inside the thinking.
bool EndsInThinking(std::span<const TokenId> prompt, const model::Tokenizer& tokenizer);

// Whether standard output is a terminal that wants styles: NO_COLOR and TERM=dumb say no.
bool MayStyleOutput();

}  // namespace vericache::apps
