// Messages in the form in which llama-common's template engine takes them.
// Threads: pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/chat_template.h"

struct common_chat_msg;  // <chat.h>

namespace vericache::model {

// Some templates want a call's id, or a result's name: calls are numbered, and results have the ids
// and names of the calls that they answer.
std::vector<common_chat_msg> ToCommon(const std::vector<ChatMessage>& messages);

// Whatever a template may write of a call: its name, the arguments as they are, and each string in
// them, key or value, without its escapes. nullopt if the arguments are no JSON, or are nested too
// deep for the engine (json_depth.h).
std::optional<std::vector<std::string>> TextsOf(const ToolCall& call);

}  // namespace vericache::model
