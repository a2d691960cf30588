// Calls of tools in an answer: as they are shown, and which of them wait for a result.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/chat_template.h"

namespace vericache::apps {

// What was parsed of an answer. One that broke off in a call is all content: that is said, and is
// no failure.
model::ParsedAnswer PartsOrAll(Result<model::ParsedAnswer> parsed, const std::string& answer);

void ShowCalls(std::span<const model::ToolCall> calls);

// The answer as a message of its conversation.
model::ChatMessage AnswerMessage(model::ParsedAnswer parsed, const std::string& answer);

// The calls of the newest answer that have no result yet; none once another message follows.
// Valid as long as the messages are not changed.
std::span<const model::ToolCall> OpenCalls(const std::vector<model::ChatMessage>& messages);

}  // namespace vericache::apps
