// The lines of a chat that begin with a slash: parsed, and applied to the options where they change
// one. What touches the conversation itself is the chat's.
// Threads: pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run_options.h"
#include "base/result.h"
#include "model/chat_template.h"

namespace vericache::apps {

struct ChatCommand {
  enum class Kind : uint8_t { kHelp, kSetting, kResult, kSave, kLoad, kStats, kClear, kExit } kind;
  std::string name;      // "mode"
  std::string argument;  // without blanks around it
};

// The command of a line; nullopt if the line is a message.
// Errors: kInvalidArgument for a command that does not exist, or without its argument.
Result<std::optional<ChatCommand>> ParseChatCommand(std::string_view line);
std::string_view ChatHelp();

// Changes the option that the command names. Errors: kInvalidArgument, and nothing is changed.
Status ApplySetting(const ChatCommand& command, RunOptions& options);

// Messages as the note of a saved conversation, and back; nullopt if it is no such note.
std::string NoteOf(const std::vector<model::ChatMessage>& messages);
std::optional<std::vector<model::ChatMessage>> MessagesOf(const std::string& note);

}  // namespace vericache::apps
