// Goal: a burst flows evenly over the time until the next, nothing is lost, reordered, cut
// inside a character or held back beyond the next burst.
// Method: invented clocks.
#include "apps/burst_pacer.h"

#include <gtest/gtest.h>

namespace vericache::apps {
namespace {

TEST(BurstPacer, GivesTheFirstBurstAtOnce) {
  BurstPacer pacer;
  pacer.Add("hello world", 5, 1000);
  EXPECT_EQ(pacer.Take(1000), "hello world");
  EXPECT_TRUE(pacer.IsEmpty());
}

TEST(BurstPacer, SpreadsABurstOverTheIntervalBefore) {
  BurstPacer pacer;
  pacer.Add("first", 5, 0);
  pacer.Take(0);
  pacer.Add("0123456789", 5, 100'000);
  EXPECT_EQ(pacer.Take(100'000), "");
  EXPECT_EQ(pacer.Take(130'000), "012");
  EXPECT_EQ(pacer.Take(180'000), "34567");
  EXPECT_FALSE(pacer.IsEmpty());
  EXPECT_EQ(pacer.Take(200'000), "89");
  EXPECT_TRUE(pacer.IsEmpty());
}

TEST(BurstPacer, OwesWhatIsLeftAsSoonAsTheNextBurstComes) {
  BurstPacer pacer;
  pacer.Add("first", 5, 0);
  pacer.Add("0123456789", 5, 100'000);
  EXPECT_EQ(pacer.Take(150'000), "first01234");
  pacer.Add("abcdefghij", 5, 160'000);
  EXPECT_EQ(pacer.Take(160'000), "56789");
}

TEST(BurstPacer, DoesNotDelayALoneToken) {
  BurstPacer pacer;
  pacer.Add("a", 1, 0);
  pacer.Take(0);
  pacer.Add("token", 1, 100'000);
  EXPECT_EQ(pacer.Take(100'000), "token");
}

TEST(BurstPacer, NeverTakesLongerThanHalfASecond) {
  BurstPacer pacer;
  pacer.Add("a", 2, 0);
  pacer.Take(0);
  pacer.Add("0123456789", 2, 60'000'000);
  EXPECT_EQ(pacer.Take(60'500'000), "0123456789");
}

TEST(BurstPacer, KeepsCharactersWhole) {
  BurstPacer pacer;
  pacer.Add("a", 2, 0);
  pacer.Take(0);
  const std::string text = "\xc3\xa4\xe6\xbc\xa2\xf0\x9f\x99\x82\xc3\xbc";
  pacer.Add(text, 4, 110'000);
  std::string seen;
  for (int64_t now = 110'000; now <= 220'000; now += 7'000) {
    const std::string piece = pacer.Take(now);
    EXPECT_TRUE(piece.empty() || (static_cast<unsigned char>(piece[0]) & 0xc0u) != 0x80u) << now;
    seen += piece;
  }
  EXPECT_EQ(seen + pacer.TakeAll(), text);
}

TEST(BurstPacer, GivesAllThatIsLeftAtTheEnd) {
  BurstPacer pacer;
  pacer.Add("first", 5, 0);
  pacer.Add("second", 5, 100'000);
  EXPECT_EQ(pacer.TakeAll(), "firstsecond");
  EXPECT_TRUE(pacer.IsEmpty());
}

}  // namespace
}  // namespace vericache::apps
