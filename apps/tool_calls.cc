#include "apps/tool_calls.h"

#include <algorithm>
#include <utility>

#include "apps/tell.h"

namespace vericache::apps {

model::ParsedAnswer PartsOrAll(Result<model::ParsedAnswer> parsed, const std::string& answer) {
  if (parsed) return *std::move(parsed);
  Tell("tool     none: {}\n", parsed.error().message);
  return {.content = answer, .tool_calls = {}};
}

void ShowCalls(std::span<const model::ToolCall> calls) {
  for (const model::ToolCall& call : calls) Tell("tool     {} {}\n", call.name, call.arguments);
}

model::ChatMessage AnswerMessage(model::ParsedAnswer parsed, const std::string& answer) {
  // Without calls not even a blank is taken from it: its tokens are those that were decoded.
  if (parsed.tool_calls.empty()) return {"assistant", answer};
  return {"assistant", std::move(parsed.content), std::move(parsed.tool_calls), answer};
}

std::span<const model::ToolCall> OpenCalls(const std::vector<model::ChatMessage>& messages) {
  const auto answer =
      std::find_if(messages.rbegin(), messages.rend(),
                   [](const model::ChatMessage& message) { return message.role != "tool"; });
  if (answer == messages.rend()) return {};
  const auto n_results = static_cast<size_t>(answer - messages.rbegin());
  const std::span<const model::ToolCall> calls = answer->tool_calls;
  return calls.subspan(std::min(n_results, calls.size()));
}

}  // namespace vericache::apps
