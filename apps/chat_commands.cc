#include "apps/chat_commands.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace vericache::apps {
namespace {

using Json = nlohmann::ordered_json;
using Kind = ChatCommand::Kind;

struct Known {
  std::string_view name;
  Kind kind;
  std::string_view argument;  // "": takes none
};

constexpr std::array<Known, 11> kKnown = {{{"help", Kind::kHelp, ""},
                                           {"mode", Kind::kSetting, "full, lossy or verified"},
                                           {"compressor", Kind::kSetting, "a SPEC"},
                                           {"draft", Kind::kSetting, "a length or auto"},
                                           {"result", Kind::kResult, "a TEXT"},
                                           {"save", Kind::kSave, "a FILE"},
                                           {"load", Kind::kLoad, "a FILE"},
                                           {"stats", Kind::kStats, ""},
                                           {"clear", Kind::kClear, ""},
                                           {"exit", Kind::kExit, ""},
                                           {"quit", Kind::kExit, ""}}};

std::string Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1));
}

bool HasText(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string();
}

std::optional<model::ToolCall> CallOf(const Json& json) {
  if (!HasText(json, "name") || !HasText(json, "arguments")) return std::nullopt;
  model::ToolCall call{json["name"].get<std::string>(), json["arguments"].get<std::string>()};
  if (!Json::accept(call.arguments)) return std::nullopt;
  return call;
}

std::optional<model::ChatMessage> MessageOf(const Json& json) {
  if (!HasText(json, "role") || !HasText(json, "content")) return std::nullopt;
  model::ChatMessage message{json["role"].get<std::string>(), json["content"].get<std::string>()};
  if (!json.contains("tool_calls")) return message;  // as all are in older files
  if (!json["tool_calls"].is_array() || !HasText(json, "as_written")) return std::nullopt;
  for (const Json& one : json["tool_calls"]) {
    auto call = CallOf(one);
    if (!call) return std::nullopt;
    message.tool_calls.push_back(*std::move(call));
  }
  message.as_written = json["as_written"].get<std::string>();
  return message;
}

Json JsonOf(const model::ChatMessage& message) {
  Json json = {{"role", message.role}, {"content", message.content}};
  if (message.tool_calls.empty()) return json;
  Json& calls = json["tool_calls"] = Json::array();
  for (const model::ToolCall& call : message.tool_calls) {
    calls.push_back({{"name", call.name}, {"arguments", call.arguments}});
  }
  json["as_written"] = message.as_written;
  return json;
}

}  // namespace

Result<std::optional<ChatCommand>> ParseChatCommand(std::string_view line) {
  if (!line.starts_with('/')) return std::optional<ChatCommand>{};
  const size_t end = std::min(line.find_first_of(" \t\n"), line.size());
  const std::string_view name = line.substr(1, end - 1);
  const auto* known = std::find_if(kKnown.begin(), kKnown.end(),
                                   [&](const Known& one) { return one.name == name; });
  if (known == kKnown.end()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "there is no /{}; /help lists the commands, and a message may begin with a "
                     "blank",
                     name);
  }
  ChatCommand command{known->kind, std::string(name), Trimmed(line.substr(end))};
  if (!known->argument.empty() && command.argument.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "/{} needs {}", name, known->argument);
  }
  if (known->argument.empty() && !command.argument.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "/{} takes no '{}'", name, command.argument);
  }
  return std::optional<ChatCommand>(std::move(command));
}

std::string_view ChatHelp() {
  return "/mode full|lossy|verified   how the next answers are decoded\n"
         "/compressor SPEC            how their draft KV is made (vericache run --help)\n"
         "/draft N|auto               tokens drafted before each verify\n"
         "/result TEXT                answers a call of a tool (vericache run --tools)\n"
         "/save FILE                  keeps the conversation and its full KV in a file\n"
         "/load FILE                  goes on with a saved conversation\n"
         "/stats                      the last answer in figures\n"
         "/clear                      begins anew\n"
         "/exit                       leaves; so does Ctrl-D\n"
         "Ctrl-C ends an answer, or discards a line. A line that ends in \\ goes on in the next.\n";
}

Status ApplySetting(const ChatCommand& command, RunOptions& options) {
  RunOptions changed = options;
  if (command.name == "mode") changed.mode = command.argument;
  if (command.name == "compressor") changed.compressor = command.argument;
  if (command.name == "draft") changed.draft_len = command.argument;
  VC_RETURN_IF_ERROR(MakeRequest(changed));
  options = std::move(changed);
  return {};
}

std::string NoteOf(const std::vector<model::ChatMessage>& messages) {
  Json note = Json::array();
  for (const model::ChatMessage& message : messages) note.push_back(JsonOf(message));
  return note.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::vector<model::ChatMessage>> MessagesOf(const std::string& note) {
  const Json json = Json::parse(note, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return std::nullopt;
  std::vector<model::ChatMessage> messages;
  for (const Json& one : json) {
    auto message = MessageOf(one);
    if (!message) return std::nullopt;
    messages.push_back(*std::move(message));
  }
  return messages;
}

}  // namespace vericache::apps
