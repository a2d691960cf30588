// Goal: what a file of defaults sets is taken as written; what is no setting is refused with its
// line.
// Method: small files.
#include "apps/config_file.h"

#include <gtest/gtest.h>

namespace vericache::apps {
namespace {

// "command.key=value|value" for each setting.
std::string Flat(std::string_view text) {
  const auto settings = ParseConfig(text);
  if (!settings) return settings.error().message;
  std::string flat;
  for (const Setting& setting : *settings) {
    flat += setting.command + "." + setting.key + "=";
    for (const std::string& value : setting.values) flat += value + "|";
    flat += " ";
  }
  return flat;
}

TEST(Config, TakesTextsNumbersSwitchesAndArrays) {
  EXPECT_EQ(Flat(""), "");
  EXPECT_EQ(Flat("a = 'x # y'\n"), ".a=x # y| ");
  EXPECT_EQ(Flat("[run]\nn = -1\nflag = true\n"), "run.flag=true| run.n=-1| ");
  EXPECT_EQ(Flat("[run]\nt = 0.8\nu = 1e-6\nbig = 9223372036854775807"),
            "run.big=9223372036854775807| run.t=0.8| run.u=1e-06| ");
  EXPECT_EQ(Flat("[bench.acceptance]\nn = 3"), "bench acceptance.n=3| ");
  EXPECT_EQ(Flat("[run]\nstop = [\"a,b\", \"\\n\"]"), "run.stop=a,b|\n| ");
}

TEST(Config, RefusesWithTheLine) {
  for (const auto& [text, line] : {std::pair{"a = 1\nb =\n", "line 2"},
                                   {"[run\n", "line 1"},
                                   {"a = 1\na = 2\n", "line 2"},
                                   {"\n\na = 12:00:00\n", "line 3: 'a'"},
                                   {"[run]\na = [[1]]\n", "line 2: 'a'"},
                                   {"[run]\nstop = []\n", "line 2: 'stop' is an empty array"}}) {
    EXPECT_NE(Flat(text).find(line), std::string::npos) << text << ": " << Flat(text);
  }
}

TEST(Config, SaysTheLineOfEachSetting) {
  const auto settings = ParseConfig("\na = 1\n[run]\n\nb = 2\n");
  ASSERT_TRUE(settings.has_value());
  ASSERT_EQ(settings->size(), 2u);
  EXPECT_EQ((*settings)[0].line, 2);
  EXPECT_EQ((*settings)[1].line, 5);
}

}  // namespace
}  // namespace vericache::apps
