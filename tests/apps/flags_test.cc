// Goal: an option's value is taken whole or refused with a sentence that names it and what is
// right; the help shows the default that holds.
// Method: small apps with one option each, parsed from strings.
#include "apps/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace vericache::apps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The message of the refusal; empty if the arguments were taken.
std::string Refusal(CLI::App& app, std::vector<std::string> reversed_arguments) {
  try {
    app.parse(reversed_arguments);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseBytes, KnowsSuffixesInPowersOf1024) {
  EXPECT_EQ(ParseBytes("1000"), 1000u);
  EXPECT_EQ(ParseBytes("64K"), 65536u);
  EXPECT_EQ(ParseBytes("512M"), size_t{512} << 20);
  EXPECT_EQ(ParseBytes("1.5g"), size_t{3} << 29);
  EXPECT_EQ(ParseBytes("2GiB"), size_t{2} << 30);
  EXPECT_EQ(ParseBytes("3MB"), size_t{3} << 20);
}

TEST(ParseBytes, RefusesWhatIsNoSize) {
  for (const char* text : {"", "G", "-1", "4X", "4GG", "1e999", "1.2.3", " 4G", "9999999999T"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

TEST(ParseInteger, TakesAllOfTheTextOrNothing) {
  EXPECT_EQ(ParseInteger("-5"), -5);
  EXPECT_EQ(ParseInteger("5x"), std::nullopt);
  EXPECT_EQ(ParseInteger(""), std::nullopt);
  EXPECT_EQ(ParseInteger("99999999999999999999"), std::nullopt);
  EXPECT_EQ(ParseUnsigned("18446744073709551615"), ~uint64_t{0});
  EXPECT_EQ(ParseUnsigned("18446744073709551616"), std::nullopt);
}

TEST(AddInt, NamesTheValueAndTheRange) {
  CLI::App app;
  int value = 7;
  AddInt(app, {"-n,--number", "N", "a number"}, {-1, 10}, value);
  EXPECT_EQ(Refusal(app, {"11", "-n"}), "--number takes a whole number from -1 to 10, not '11'");
  EXPECT_EQ(Refusal(app, {"two", "-n"}), "--number takes a whole number from -1 to 10, not 'two'");
  EXPECT_EQ(value, 7);
  EXPECT_EQ(Refusal(app, {"-1", "-n"}), "");
  EXPECT_EQ(value, -1);
}

TEST(AddInt, LetsTheLastOfSeveralCount) {
  CLI::App app;
  int value = 0;
  AddInt(app, {"-n,--number", "N", "a number"}, {0, 10}, value);
  EXPECT_EQ(Refusal(app, {"4", "-n", "3", "-n"}), "");
  EXPECT_EQ(value, 4);
}

TEST(AddInt, ShowsTheDefaultInTheHelp) {
  CLI::App app;
  int value = 7;
  AddInt(app, {"-n,--number", "N", "a number"}, {0, 10}, value);
  EXPECT_THAT(app.help(), HasSubstr("a number (default: 7)"));
}

TEST(AddNumber, RefusesNanAndInfinity) {
  CLI::App app;
  float value = 1;
  AddNumber(app, {"--temp", "T", "temperature"}, {0, 100}, value);
  for (const char* text : {"nan", "inf", "-0.1", "1e999", "0.8x"}) {
    EXPECT_EQ(Refusal(app, {text, "--temp"}),
              std::string("--temp takes a number from 0 to 100, not '") + text + "'");
  }
}

TEST(AddChoice, ListsWhatThereIs) {
  CLI::App app;
  std::string value = "full";
  AddChoice(app, {"--mode", "MODE", "mode"}, {"full", "lossy"}, value);
  EXPECT_EQ(Refusal(app, {"fast", "--mode"}), "--mode takes one of full, lossy, not 'fast'");
}

TEST(AddIntList, ChecksEachOfTheNumbers) {
  CLI::App app;
  std::vector<int> values = {1};
  AddIntList(app, {"--rows", "N,...", "rows"}, {1, 64}, values);
  EXPECT_EQ(Refusal(app, {"1,8,64", "--rows"}), "");
  EXPECT_THAT(values, ElementsAre(1, 8, 64));
  EXPECT_EQ(Refusal(app, {"1,,2", "--rows"}), "--rows takes a whole number from 1 to 64, not ''");
}

TEST(AddRepeated, KeepsEveryValueAsItIs) {
  CLI::App app;
  std::vector<std::string> values;
  AddRepeated(app, {"--stop", "TEXT", "stops"}, values);
  EXPECT_EQ(Refusal(app, {"[a,b]", "--stop", "x y", "--stop"}), "");
  EXPECT_THAT(values, ElementsAre("x y", "[a,b]"));
}

class ApplySettingsTest : public ::testing::Test {
 protected:
  ApplySettingsTest() {
    CLI::App& outer = AddCommand(app_, "outer", "", [] {});
    AddInt(outer, {"-n,--number", "N", "a number"}, {0, 10}, number_);
    AddSwitch(outer, "--fast", "a switch", is_fast_);
    CLI::App& inner = AddCommand(outer, "inner", "", [] {});
    AddInt(inner, {"-n,--number", "N", "a number"}, {0, 10}, inner_number_);
    AddRepeated(inner, {"--stop", "TEXT", "stops"}, stops_);
  }
  std::string Message(const std::vector<Setting>& settings) {
    const Status status = ApplySettings(app_, settings);
    return status ? "" : status.error().message;
  }

  CLI::App app_;
  int number_ = 1;
  int inner_number_ = 1;
  bool is_fast_ = false;
  std::vector<std::string> stops_;
};

TEST_F(ApplySettingsTest, ACommandsOwnComeBeforeThoseForAll) {
  EXPECT_EQ(Message({{"", "number", {"2"}, 1}, {"outer inner", "number", {"3"}, 2}}), "");
  EXPECT_EQ(number_, 2);
  EXPECT_EQ(inner_number_, 3);
}

TEST_F(ApplySettingsTest, TheCommandLineComesFirst) {
  EXPECT_EQ(Refusal(app_, {"4", "-n", "outer"}), "");
  EXPECT_EQ(Message({{"outer", "number", {"2"}, 1}, {"outer", "fast", {"true"}, 2}}), "");
  EXPECT_EQ(number_, 4);
  EXPECT_TRUE(is_fast_);
}

TEST_F(ApplySettingsTest, RefusesWithTheLine) {
  EXPECT_EQ(Message({{"outer", "n", {"11"}, 7}}),
            "line 7: --number takes a whole number from 0 to 10, not '11'");
  EXPECT_EQ(Message({{"outer", "number", {"2", "3"}, 7}}),
            "line 7: 'number' takes one value, not 2");
  EXPECT_EQ(Message({{"outer inner", "fast", {"true"}, 7}}),
            "line 7: 'outer.inner.fast' is no option of a command");
  EXPECT_EQ(Message({{"", "slow", {"1"}, 7}}), "line 7: 'slow' is no option of a command");
  EXPECT_EQ(Message({{"outer inner", "stop", {"a", "b"}, 1}}), "");
  EXPECT_THAT(stops_, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace vericache::apps
