// An answer as the user sees it come: progress while a long prompt is prefilled, then text.
//
// Threads: one.
#pragma once

#include <unistd.h>

#include <optional>
#include <span>
#include <string>

#include "apps/answer_writer.h"
#include "apps/generation.h"
#include "apps/progress.h"
#include "apps/thinking.h"

namespace vericache::apps {

class Answer {
 public:
  // is_quiet: nothing but the JSON may go to standard output.
  Answer(std::span<const TokenId> prompt, const model::Tokenizer& tokenizer, bool is_quiet)
      : progress_("", static_cast<int>(prompt.size()), isatty(STDERR_FILENO) == 1),
        is_quiet_(is_quiet),
        writer_(STDOUT_FILENO, Pacing()) {
    if (MayStyleOutput()) thinking_.emplace(EndsInThinking(prompt, tokenizer));
  }

  // Valid as long as this object.
  Watcher GetWatcher() {
    return {.on_prefill = [this](int n_done) { progress_.Show(n_done); },
            .on_tokens =
                [this](const engine::Event& event) {
                  progress_.Clear();
                  if (!is_quiet_) Write(event.text, static_cast<int>(event.tokens.size()));
                  return !writer_.HasFailed();
                }};
  }
  void Finish() {
    progress_.Clear();
    if (const std::string end = thinking_ ? thinking_->End() : ""; !end.empty())
      writer_.Write(end, 0);
    writer_.Finish();
  }
  bool HasFailed() const { return writer_.HasFailed(); }
  Status GetStatus() const { return writer_.GetStatus(); }  // why

 private:
  void Write(const std::string& text, int n_tokens) {
    writer_.Write(thinking_ ? thinking_->Apply(text) : text, n_tokens);
  }
  static AnswerWriter::Pacing Pacing() {
    return isatty(STDOUT_FILENO) == 1 ? AnswerWriter::Pacing::kEven : AnswerWriter::Pacing::kAtOnce;
  }

  PrefillProgress progress_;
  bool is_quiet_;
  std::optional<ThinkingStyle> thinking_;
  AnswerWriter writer_;
};

}  // namespace vericache::apps
