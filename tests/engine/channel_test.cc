// Goal: events arrive in order and complete, a slow reader costs no memory beyond what it has
// not read, and the end is the end.
// Method: examples; a writer and a reader at their own pace.

#include "engine/channel.h"

#include <gtest/gtest.h>

#include <thread>

namespace vericache::engine {
namespace {

Event Tokens(int id, const std::string& text) {
  return {.kind = Event::Kind::kTokens, .tokens = {TokenId{id}}, .text = text};
}

TEST(Channel, JoinsWhatWasNotReadYet) {
  Channel channel;
  channel.Push({.kind = Event::Kind::kPrefill, .prefilled = 10});
  channel.Push({.kind = Event::Kind::kPrefill, .prefilled = 20});
  channel.Push(Tokens(1, "a"));
  channel.Push(Tokens(2, "b"));
  channel.Push({.kind = Event::Kind::kFinished, .reason = decode::FinishReason::kEos});

  Event event;
  ASSERT_TRUE(channel.Pop(event));
  EXPECT_EQ(event.kind, Event::Kind::kPrefill);
  EXPECT_EQ(event.prefilled, 20);
  ASSERT_TRUE(channel.Pop(event));
  EXPECT_EQ(event.tokens, (std::vector<TokenId>{TokenId{1}, TokenId{2}}));
  EXPECT_EQ(event.text, "ab");
  ASSERT_TRUE(channel.Pop(event));
  EXPECT_EQ(event.kind, Event::Kind::kFinished);
  EXPECT_EQ(event.reason, decode::FinishReason::kEos);
  EXPECT_FALSE(channel.Pop(event));
  EXPECT_FALSE(channel.Pop(event));
}

TEST(Channel, LosesNothingBetweenThreads) {
  constexpr int kEvents = 5000;
  Channel channel;
  std::thread writer([&] {
    for (int i = 0; i < kEvents; ++i) channel.Push(Tokens(i, "x"));
    channel.Push({.kind = Event::Kind::kFinished});
  });
  int n_tokens = 0;
  size_t n_text = 0;
  Event event;
  while (channel.Pop(event)) {
    for (const TokenId token : event.tokens) ASSERT_EQ(token, TokenId{n_tokens++});
    n_text += event.text.size();
  }
  writer.join();
  EXPECT_EQ(n_tokens, kEvents);
  EXPECT_EQ(n_text, static_cast<size_t>(kEvents));
}

TEST(Channel, RemembersACancel) {
  Channel channel;
  EXPECT_FALSE(channel.IsCancelled());
  channel.Cancel();
  EXPECT_TRUE(channel.IsCancelled());
}

}  // namespace
}  // namespace vericache::engine
