// libllama, ggml and llama-common log to one process-wide sink. We keep it quiet, and collect the
// errors of a call that fails, because they say more than its return value.
#pragma once

#include <string>

namespace vericache::model {

// While one lives, errors logged on this thread are collected; all else is dropped, and stays
// dropped afterwards. Threads: each object is used by the thread that made it; they do not nest.
class LlamaErrors {
 public:
  LlamaErrors();
  ~LlamaErrors();
  LlamaErrors(const LlamaErrors&) = delete;
  LlamaErrors& operator=(const LlamaErrors&) = delete;

  // The errors so far as one line, or `otherwise` if there are none.
  std::string Text(const std::string& otherwise) const;

 private:
  std::string text_;
};

}  // namespace vericache::model
