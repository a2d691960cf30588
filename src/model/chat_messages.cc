#include "model/chat_messages.h"

#include <chat.h>
#include <fmt/format.h>

#include "model/json_depth.h"

namespace vericache::model {
namespace {

void CollectStrings(const common_json& json, std::vector<std::string>& texts) {
  if (json.is_string()) {
    texts.push_back(json.get<std::string>());
  } else if (json.is_array()) {
    for (const common_json& element : json) CollectStrings(element, texts);
  } else if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      texts.push_back(key);
      CollectStrings(value, texts);
    }
  }
}

}  // namespace

std::vector<common_chat_msg> ToCommon(const std::vector<ChatMessage>& messages) {
  std::vector<common_chat_msg> out;
  std::vector<common_chat_tool_call> calls;  // of the newest answer
  size_t n_answered = 0;                     // of them
  size_t n_calls = 0;                        // of all answers
  for (const ChatMessage& message : messages) {
    common_chat_msg& msg = out.emplace_back();
    msg.role = message.role;
    msg.content = message.content;
    for (const ToolCall& call : message.tool_calls) {
      // Nine letters and digits: Mistral's templates accept nothing else.
      msg.tool_calls.push_back({.name = call.name,
                                .arguments = call.arguments,
                                .id = fmt::format("call{:05}", n_calls++)});
    }
    if (message.role != "tool") {
      calls = msg.tool_calls;
      n_answered = 0;
    } else if (n_answered < calls.size()) {
      msg.tool_name = calls[n_answered].name;
      msg.tool_call_id = calls[n_answered].id;
      ++n_answered;
    }
  }
  return out;
}

std::optional<std::vector<std::string>> TextsOf(const ToolCall& call) {
  if (JsonDepth(call.arguments) > kMaxJsonDepth) return std::nullopt;
  const common_json arguments = common_json::parse_no_throw(call.arguments);
  if (arguments.is_discarded()) return std::nullopt;
  std::vector<std::string> texts = {call.name, call.arguments};
  CollectStrings(arguments, texts);
  return texts;
}

}  // namespace vericache::model
