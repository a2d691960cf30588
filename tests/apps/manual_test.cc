// Goal: whatever help says, the manual page says it too and roff takes it for text.
// Method: a command whose help is made of what roff would act upon.
#include "apps/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vericache::apps {
namespace {

using ::testing::HasSubstr;

TEST(ManualPage, KeepsRoffFromActingOnText) {
  const CommandInfo root{.name = "", .help = "does", .footer = "", .flags = {}};
  const FlagInfo flag{.names = {"-x", "--ex-it"},
                      .value = "A-B",
                      .help = ".so /etc/passwd\n'quoted' \\n and .dots in a line",
                      .choices = {}};
  const CommandInfo command{.name = "go", .help = "goes", .footer = ".end", .flags = {flag}};
  const std::string page = ManualPage({root, command}, "1-2");
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-x\\fR, \\fB\\-\\-ex\\-it\\fR \\fIA\\-B\\fR\n"
                              "\\&.so /etc/passwd\n.br\n\\&'quoted' \\en and .dots in a line\n"));
  EXPECT_THAT(page, HasSubstr(".nf\n\\&.end\n.fi\n"));
}

}  // namespace
}  // namespace vericache::apps
