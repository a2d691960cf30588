#include "model/llama_log.h"

#include <llama.h>
#include <log.h>

#include <limits>
#include <mutex>

#include "base/check.h"

namespace vericache::model {
namespace {

thread_local std::string* collecting = nullptr;

void Collect(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR && collecting != nullptr) *collecting += text;
}

void Silence() {
  static std::once_flag once;
  std::call_once(once, [] {
    llama_log_set(Collect, nullptr);  // sets ggml's too
    common_log_set_verbosity_thold(std::numeric_limits<int>::min());
  });
}

}  // namespace

LlamaErrors::LlamaErrors() {
  VC_CHECK(collecting == nullptr);
  Silence();
  collecting = &text_;
}

LlamaErrors::~LlamaErrors() { collecting = nullptr; }

std::string LlamaErrors::Text(const std::string& otherwise) const {
  std::string line;
  for (const char c : text_) line += c == '\n' ? ' ' : c;
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line.empty() ? otherwise : line;
}

}  // namespace vericache::model
