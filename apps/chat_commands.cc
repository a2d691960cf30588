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

constexpr std::array<Known, 10> kKnown = {{{"help", Kind::kHelp, ""},
                                           {"mode", Kind::kSetting, "full, lossy or verified"},
                                           {"compressor", Kind::kSetting, "a SPEC"},
                                           {"draft", Kind::kSetting, "a length or auto"},
                                           {"save", Kind::kSave, "a FILE"},
                                           {"load", Kind::kLoad, "a FILE"},
                                           {"stats", Kind::kStats, ""},
                                           {"clear", Kind::kClear, ""},
                                           {"exit", Kind::kExit, ""},
                                           {"quit", Kind::kExit, ""}}};

std::string Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
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
  for (const model::ChatMessage& message : messages) {
    note.push_back({{"role", message.role}, {"content", message.content}});
  }
  return note.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::vector<model::ChatMessage>> MessagesOf(const std::string& note) {
  const Json json = Json::parse(note, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return std::nullopt;
  std::vector<model::ChatMessage> messages;
  for (const Json& one : json) {
    const bool is_message = one.is_object() && one.contains("role") && one.contains("content") &&
                            one["role"].is_string() && one["content"].is_string();
    if (!is_message) return std::nullopt;
    messages.push_back({one["role"].get<std::string>(), one["content"].get<std::string>()});
  }
  return messages;
}

}  // namespace vericache::apps
