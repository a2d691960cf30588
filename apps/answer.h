// An answer as the user sees it come: progress while a long prompt is prefilled, then text.
//
// Threads: one.
#pragma once

#include <unistd.h>

#include "apps/answer_writer.h"
#include "apps/generation.h"
#include "apps/progress.h"

namespace vericache::apps {

class Answer {
 public:
  // is_quiet: nothing but the JSON may go to standard output.
  Answer(int n_prompt, bool is_quiet)
      : progress_("", n_prompt, isatty(STDERR_FILENO) == 1),
        is_quiet_(is_quiet),
        writer_(STDOUT_FILENO, Pacing()) {}

  // Valid as long as this object.
  Watcher GetWatcher() {
    return {.on_prefill = [this](int n_done) { progress_.Show(n_done); },
            .on_tokens =
                [this](const engine::Event& event) {
                  progress_.Clear();
                  if (!is_quiet_) writer_.Write(event.text, static_cast<int>(event.tokens.size()));
                  return !writer_.HasFailed();
                }};
  }
  void Finish() {
    progress_.Clear();
    writer_.Finish();
  }
  bool HasFailed() const { return writer_.HasFailed(); }
  Status GetStatus() const { return writer_.GetStatus(); }  // why

 private:
  static AnswerWriter::Pacing Pacing() {
    return isatty(STDOUT_FILENO) == 1 ? AnswerWriter::Pacing::kEven : AnswerWriter::Pacing::kAtOnce;
  }

  PrefillProgress progress_;
  bool is_quiet_;
  AnswerWriter writer_;
};

}  // namespace vericache::apps
