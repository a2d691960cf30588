// Goal: of an answer's calls, those without a result wait, and only as long as nothing else
// follows. Method: conversations that end in each way.

#include "apps/tool_calls.h"

#include <gtest/gtest.h>

namespace vericache::apps {
namespace {

using model::ChatMessage;

std::string Names(std::span<const model::ToolCall> calls) {
  std::string names;
  for (const model::ToolCall& call : calls) names += call.name + " ";
  return names;
}

TEST(ToolCalls, ResultsAnswerTheNewestCallsInOrder) {
  std::vector<ChatMessage> messages;
  EXPECT_EQ(Names(OpenCalls(messages)), "");
  messages.push_back({"user", "hello"});
  EXPECT_EQ(Names(OpenCalls(messages)), "");
  messages.push_back(AnswerMessage({"", {{"old", "{}"}}}, "old"));
  messages.push_back({"user", "go on"});
  EXPECT_EQ(Names(OpenCalls(messages)), "");
  messages.push_back(AnswerMessage({"", {{"weather", "{}"}, {"clock", "{}"}}}, "both"));
  EXPECT_EQ(Names(OpenCalls(messages)), "weather clock ");
  messages.push_back({"tool", "rain"});
  EXPECT_EQ(Names(OpenCalls(messages)), "clock ");
  messages.push_back({"tool", "noon"});
  EXPECT_EQ(Names(OpenCalls(messages)), "");
  messages.push_back({"tool", "too many, as a file may have them"});
  EXPECT_EQ(Names(OpenCalls(messages)), "");
  EXPECT_EQ(Names(OpenCalls({{"tool", "nothing else"}})), "");
}

TEST(ToolCalls, AnAnswerIsAMessageWithItsCallsOrAsItWasWritten) {
  const ChatMessage calls = AnswerMessage({"Wait.", {{"clock", "{}"}}}, "Wait. <call>");
  EXPECT_EQ(calls.role, "assistant");
  EXPECT_EQ(calls.content, "Wait.");
  EXPECT_EQ(calls.tool_calls.size(), 1u);
  EXPECT_EQ(calls.as_written, "Wait. <call>");
  const ChatMessage plain = AnswerMessage({"It rains.", {}}, "It rains. ");
  EXPECT_EQ(plain.content, "It rains. ");
  EXPECT_TRUE(plain.as_written.empty());
}

TEST(ToolCalls, AnAnswerThatBreaksOffIsAllContent) {
  const auto all = PartsOrAll(tl::unexpected(Error{ErrorCode::kInvalidArgument, "breaks"}), "<ca");
  EXPECT_EQ(all.content, "<ca");
  EXPECT_TRUE(all.tool_calls.empty());
}

}  // namespace
}  // namespace vericache::apps
