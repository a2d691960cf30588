// Goal: calls and results find each other by ids and names, and no text of a call is overlooked.
// Method: conversations and arguments given, right and wrong.

#include "model/chat_messages.h"

#include <chat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/json_depth.h"

namespace vericache::model {
namespace {

using ::testing::UnorderedElementsAre;

ChatMessage Answer(const std::vector<ToolCall>& calls) {
  return {.role = "assistant", .content = "", .tool_calls = calls, .as_written = "calls"};
}

TEST(ChatMessages, ResultsHaveTheIdsAndNamesOfTheirCallsInOrder) {
  const std::vector<common_chat_msg> messages =
      ToCommon({{"user", "hello"},
                Answer({{"weather", R"({"city": "Paris"})"}, {"clock", "{}"}}),
                {"tool", "rain"},
                {"tool", "noon"},
                {"tool", "nobody asked"},
                Answer({{"clock", "{}"}}),
                {"tool", "one"}});
  ASSERT_EQ(messages.size(), 7u);
  EXPECT_EQ(messages[0].content, "hello");
  ASSERT_EQ(messages[1].tool_calls.size(), 2u);
  EXPECT_EQ(messages[1].tool_calls[0].arguments, R"({"city": "Paris"})");
  EXPECT_EQ(messages[1].tool_calls[0].id.size(), 9u);
  for (const size_t i : {0u, 1u}) {
    EXPECT_EQ(messages[2 + i].tool_call_id, messages[1].tool_calls[i].id);
    EXPECT_EQ(messages[2 + i].tool_name, messages[1].tool_calls[i].name);
  }
  EXPECT_EQ(messages[4].tool_call_id, "");
  EXPECT_EQ(messages[6].tool_call_id, messages[5].tool_calls[0].id);
  EXPECT_NE(messages[5].tool_calls[0].id, messages[1].tool_calls[0].id);
}

TEST(ChatMessages, EachStringOfACallIsFoundWithoutItsEscapes) {
  const std::string arguments = R"({"\u0061": ["b\n", {"c": "\u20ac"}, 1, null, true], "d": {}})";
  const auto texts = TextsOf({"f", arguments});
  ASSERT_TRUE(texts.has_value());
  EXPECT_THAT(*texts, UnorderedElementsAre("f", arguments, "a", "b\n", "c", "\xe2\x82\xac", "d"));
}

TEST(ChatMessages, ArgumentsThatAreNoJsonOrTooDeepAreNone) {
  for (const std::string& arguments :
       {std::string(), std::string("{"), std::string("{} {}"), std::string("{\"a\": \"\xff\"}"),
        std::string(kMaxJsonDepth + 1, '[') + std::string(kMaxJsonDepth + 1, ']')}) {
    EXPECT_FALSE(TextsOf({"f", arguments}).has_value()) << arguments;
  }
  EXPECT_TRUE(TextsOf({"f", std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']')})
                  .has_value());
}

}  // namespace
}  // namespace vericache::model
