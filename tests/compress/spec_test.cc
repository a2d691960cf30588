// Goal: specs are read strictly, and every complaint names what was wrong and what would be
// right.
// Method: examples of each form, good and bad.

#include "compress/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vericache::compress {
namespace {

using testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const auto parsed = ParseSpec(text);
  return parsed.has_value() ? "" : parsed.error().message;
}

TEST(ParseSpec, ReadsNamesAndPairs) {
  const auto methods = ParseSpec("snapkv:keep=0.25,window=32+kivi:bits=4+identity").value();
  ASSERT_EQ(methods.size(), 3u);
  EXPECT_EQ(methods[0].name, "snapkv");
  ASSERT_EQ(methods[0].pairs.size(), 2u);
  EXPECT_EQ(methods[0].pairs[1].key, "window");
  EXPECT_EQ(methods[0].pairs[1].value, "32");
  EXPECT_EQ(methods[1].name, "kivi");
  EXPECT_TRUE(methods[2].pairs.empty());
}

TEST(ParseSpec, RefusesWhatIsNotASpec) {
  for (const std::string_view text : {"", "+", "kivi+", "+kivi", "kivi++kivi", ":bits=4"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("without a name")) << text;
  }
  for (const std::string_view text :
       {"kivi:", "kivi:bits", "kivi:bits=", "kivi:=4", "kivi:bits=4,", "kivi:,bits=4"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("is not key=value")) << text;
  }
  EXPECT_THAT(ErrorOf("kivi:bits=4,bits=8"), HasSubstr("bits is given twice"));
}

// A method with one parameter of each kind.
struct Probe {
  double share;
  double real;
  int whole;
  int choice;
  std::string spec;
  Status status;
};

Probe Read(std::string_view text) {
  const auto methods = ParseSpec(text).value();
  Parameters parameters(methods.front());
  Probe probe{.share = parameters.Share("keep", 0.5),
              .real = parameters.Real("r", {.preset = 0.25, .low = 0.0, .high = 2.0}),
              .whole = parameters.Int("window", {.preset = 64, .low = 1, .high = 64}),
              .choice = parameters.Choice("bits", 4, {8, 4, 2}),
              .spec = {},
              .status = {}};
  probe.spec = parameters.Spec();
  probe.status = parameters.Check();
  return probe;
}

std::string Complaint(std::string_view text) {
  const Probe probe = Read(text);
  return probe.status.has_value() ? "" : probe.status.error().message;
}

TEST(Parameters, HaveDefaultsAndACanonicalForm) {
  const Probe probe = Read("m");
  EXPECT_TRUE(probe.status.has_value());
  EXPECT_EQ(probe.share, 0.5);
  EXPECT_EQ(probe.real, 0.25);
  EXPECT_EQ(probe.whole, 64);
  EXPECT_EQ(probe.choice, 4);
  EXPECT_EQ(probe.spec, "m:keep=0.5,r=0.25,window=64,bits=4");
}

TEST(Parameters, AreReadInAnyOrderAndWrittenInOne) {
  const Probe probe = Read("m:bits=2,r=0.1,window=007,keep=2.5e-1");
  EXPECT_TRUE(probe.status.has_value());
  EXPECT_EQ(probe.spec, "m:keep=0.25,r=0.1,window=7,bits=2");
  EXPECT_EQ(Read(probe.spec).spec, probe.spec);
}

TEST(Parameters, RefuseValuesOutOfRange) {
  for (const std::string_view value : {"0", "-0.1", "1.0001", "nan", "inf", "0.5x", "half"}) {
    EXPECT_THAT(Complaint(fmt::format("m:keep={}", value)),
                HasSubstr(fmt::format("keep must be above 0 and at most 1, not '{}'", value)));
  }
  EXPECT_EQ(Complaint("m:keep=1"), "");
  EXPECT_THAT(Complaint("m:r=2.1"), HasSubstr("r must be a number from 0 to 2, not '2.1'"));
  EXPECT_EQ(Read("m:r=-0").spec, "m:keep=0.5,r=0,window=64,bits=4");
  for (const std::string_view value : {"0", "65", "1.5", "99999999999", "1e1"}) {
    EXPECT_THAT(Complaint(fmt::format("m:window={}", value)),
                HasSubstr("window must be a whole number from 1 to 64"));
  }
  EXPECT_THAT(Complaint("m:bits=3"), HasSubstr("bits must be one of 8, 4, 2, not '3'"));
}

TEST(Parameters, ReadWordsOfAList) {
  const auto read = [](std::string_view text) {
    const auto methods = ParseSpec(text).value();
    Parameters parameters(methods.front());
    const int word = parameters.Word("budget", {"uniform", "layer"});
    const Status status = parameters.Check();
    return std::make_tuple(word, parameters.Spec(), status ? "" : status.error().message);
  };
  EXPECT_EQ(read("m"), std::make_tuple(0, "m:budget=uniform", ""));
  EXPECT_EQ(read("m:budget=layer"), std::make_tuple(1, "m:budget=layer", ""));
  EXPECT_EQ(std::get<2>(read("m:budget=Layer")),
            "m: budget must be one of uniform, layer, not 'Layer'");
}

TEST(Parameters, RefuseKeysThatNoOneReads) {
  EXPECT_THAT(Complaint("m:kep=0.5"),
              HasSubstr("m has no parameter 'kep'; it has keep, r, window, bits"));
  const auto methods = ParseSpec("identity:keep=1").value();
  EXPECT_THAT(Parameters(methods.front()).Check().error().message, HasSubstr("it has none"));
}

}  // namespace
}  // namespace vericache::compress
