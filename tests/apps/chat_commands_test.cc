// Goal: commands of a chat are told from messages, refused with what would be right, and change
// one option or none; a conversation survives its note.
// Method: lines and notes, right and wrong.

#include "apps/chat_commands.h"

#include <gtest/gtest.h>

namespace vericache::apps {
namespace {

using Kind = ChatCommand::Kind;

ChatCommand Parsed(std::string_view line) {
  const auto command = ParseChatCommand(line);
  EXPECT_TRUE(command.has_value() && command->has_value()) << line;
  return **command;
}

TEST(ChatCommands, ParsesNamesAndArguments) {
  EXPECT_EQ(Parsed("/help").kind, Kind::kHelp);
  EXPECT_EQ(Parsed("/stats  ").kind, Kind::kStats);
  EXPECT_EQ(Parsed("/quit").kind, Kind::kExit);
  const ChatCommand save = Parsed("/save \t my file.kv ");
  EXPECT_EQ(save.kind, Kind::kSave);
  EXPECT_EQ(save.argument, "my file.kv");
  const ChatCommand result = Parsed("/result\n {\"sky\":\n\"grey\"}\n");
  EXPECT_EQ(result.kind, Kind::kResult);
  EXPECT_EQ(result.argument, "{\"sky\":\n\"grey\"}");
}

TEST(ChatCommands, AMessageIsNoCommand) {
  for (const char* line : {"hello", "", " /help", "what is /help?"}) {
    const auto command = ParseChatCommand(line);
    ASSERT_TRUE(command.has_value());
    EXPECT_FALSE(command->has_value()) << line;
  }
}

TEST(ChatCommands, RefusesWhatIsNoCommand) {
  for (const auto& [line, text] :
       std::vector<std::pair<std::string, std::string>>{{"/halp", "no /halp"},
                                                        {"/", "no /;"},
                                                        {"/save", "needs a FILE"},
                                                        {"/result ", "needs a TEXT"},
                                                        {"/mode  ", "full, lossy"},
                                                        {"/clear all", "takes no 'all'"}}) {
    const auto command = ParseChatCommand(line);
    ASSERT_FALSE(command.has_value()) << line;
    EXPECT_NE(command.error().message.find(text), std::string::npos) << command.error().message;
  }
}

TEST(ChatCommands, EveryCommandIsInTheHelp) {
  for (const char* name :
       {"mode", "compressor", "draft", "result", "save", "load", "stats", "clear", "exit"}) {
    EXPECT_NE(ChatHelp().find(std::string("/") + name), std::string_view::npos) << name;
  }
}

TEST(ChatCommands, ASettingChangesItsOptionOrNothing) {
  RunOptions options;
  ASSERT_TRUE(ApplySetting(Parsed("/mode lossy"), options).has_value());
  ASSERT_TRUE(ApplySetting(Parsed("/compressor kivi:bits=4"), options).has_value());
  ASSERT_TRUE(ApplySetting(Parsed("/draft 9"), options).has_value());
  for (const char* line : {"/mode fast", "/compressor zip", "/draft many", "/draft 1000"}) {
    EXPECT_FALSE(ApplySetting(Parsed(line), options).has_value()) << line;
  }
  EXPECT_EQ(options.mode, "lossy");
  EXPECT_EQ(options.compressor, "kivi:bits=4");
  EXPECT_EQ(options.draft_len, "9");
}

TEST(ChatCommands, MessagesSurviveTheirNote) {
  const std::vector<model::ChatMessage> messages = {{"system", "\"quoted\"\n"}, {"user", "héllo"}};
  const auto back = MessagesOf(NoteOf(messages));
  ASSERT_TRUE(back.has_value());
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].content, messages[0].content);
  EXPECT_EQ((*back)[1].role, "user");
  EXPECT_EQ((*back)[1].content, messages[1].content);
  EXPECT_TRUE(MessagesOf("[]")->empty());
  for (const char* note :
       {"", "{", "{}", "[1]", R"([{"role":"user"}])", R"([{"role":1,"content":""}])"}) {
    EXPECT_FALSE(MessagesOf(note).has_value()) << note;
  }
}

TEST(ChatCommands, CallsAndResultsSurviveTheirNote) {
  const std::vector<model::ChatMessage> messages = {
      {"user", "hello"},
      {"assistant",
       "Wait.",
       {{"weather", R"({"city": "Paris"})"}, {"clock", "{}"}},
       "Wait. <call>"},
      {"tool", "rain"}};
  const auto back = MessagesOf(NoteOf(messages));
  ASSERT_TRUE(back.has_value());
  ASSERT_EQ(back->size(), 3u);
  const model::ChatMessage& answer = (*back)[1];
  EXPECT_EQ(answer.content, "Wait.");
  EXPECT_EQ(answer.as_written, "Wait. <call>");
  ASSERT_EQ(answer.tool_calls.size(), 2u);
  EXPECT_EQ(answer.tool_calls[0].name, "weather");
  EXPECT_EQ(answer.tool_calls[0].arguments, R"({"city": "Paris"})");
  EXPECT_EQ(answer.tool_calls[1].name, "clock");
  EXPECT_EQ((*back)[2].role, "tool");
  EXPECT_EQ((*back)[2].content, "rain");
}

TEST(ChatCommands, RefusesANoteWithCallsThatAreNone) {
  const auto note = [](const std::string& calls, const std::string& rest) {
    return R"([{"role":"assistant","content":"","tool_calls":)" + calls + rest + "}]";
  };
  const std::string written = R"(,"as_written":"<call>")";
  EXPECT_TRUE(MessagesOf(note(R"([{"name":"f","arguments":"{}"}])", written)).has_value());
  EXPECT_FALSE(MessagesOf(note(R"([{"name":"f","arguments":"{}"}])", "")).has_value());
  for (const char* calls :
       {"{}", "1", "[1]", "[{}]", R"([{"name":"f"}])", R"([{"arguments":"{}"}])",
        R"([{"name":1,"arguments":"{}"}])", R"([{"name":"f","arguments":{}}])",
        R"([{"name":"f","arguments":""}])", R"([{"name":"f","arguments":"{"}])"}) {
    EXPECT_FALSE(MessagesOf(note(calls, written)).has_value()) << calls;
  }
}

}  // namespace
}  // namespace vericache::apps
