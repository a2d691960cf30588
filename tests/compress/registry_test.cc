// Goal: every listed method can be made, says what it is, and its canonical spec makes it again;
// what does not exist is refused with what does.
// Method: walk the list; examples of bad specs.

#include "compress/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing::HasSubstr;
using testing_support::Make;

std::string ErrorOf(std::string_view spec) {
  const auto made = MakeCompressor(spec);
  return made.has_value() ? "" : made.error().message;
}

TEST(Registry, MakesEveryListedMethodByItsName) {
  std::set<std::string_view> names;
  for (const MethodInfo& method : ListMethods()) {
    EXPECT_TRUE(names.insert(method.name).second) << method.name;
    EXPECT_FALSE(method.summary.empty());
    const auto made = Make(std::string(method.name));
    EXPECT_EQ(made->GetTraits().name, method.name);
    EXPECT_GE(made->GetTraits().version, 1);
    const std::string with_defaults = method.parameters.empty()
                                          ? std::string(method.name)
                                          : fmt::format("{}:{}", method.name, method.parameters);
    EXPECT_EQ(made->Spec(), with_defaults);
  }
  for (const std::string_view name :
       {"identity", "streaming", "snapkv", "h2o", "tova", "expected", "knorm", "keydiff", "merge",
        "d2o", "kivi", "rotated", "centroid"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
  EXPECT_EQ(names.count("hostile"), 0u);
}

TEST(Registry, MakesAgainWhatACanonicalSpecSays) {
  for (const std::string spec :
       {"identity", "streaming:sinks=7,keep=0.125", "snapkv:keep=0.3,window=32,kernel=7",
        "kivi:bits=2", "centroid:rmin=0.05,keep=0.25,chunk=17", "hostile:seed=9",
        "snapkv:keep=0.25+kivi:bits=4", "centroid:keep=0.5+streaming+kivi:bits=8"}) {
    const auto made = Make(spec);
    EXPECT_EQ(Make(made->Spec())->Spec(), made->Spec()) << spec;
  }
  EXPECT_EQ(Make("snapkv:keep=0.25+kivi:bits=4")->Spec(),
            "snapkv:keep=0.25,window=64,kernel=5,budget=uniform+kivi:bits=4");
}

TEST(Registry, KeepsTheHostileMethodToThoseWhoKnowIt) {
  EXPECT_EQ(Make("hostile")->GetTraits().name, "hostile");
  EXPECT_THAT(ErrorOf("nope"), testing::Not(HasSubstr("hostile")));
}

TEST(Registry, RefusesWhatDoesNotExistWithWhatDoes) {
  EXPECT_THAT(ErrorOf("snapvk"),
              HasSubstr("there is no compressor 'snapvk'; there are identity, streaming, snapkv, "
                        "h2o, tova, "));
  EXPECT_THAT(ErrorOf("SnapKV"), HasSubstr("no compressor 'SnapKV'"));
  EXPECT_THAT(ErrorOf("snapkv:ratio=0.5"),
              HasSubstr("snapkv has no parameter 'ratio'; it has keep, window, kernel, budget"));
  EXPECT_THAT(ErrorOf("identity:keep=1"), HasSubstr("it has none"));
  EXPECT_THAT(ErrorOf("snapkv+nope"), HasSubstr("no compressor 'nope'"));
  EXPECT_THAT(ErrorOf("h2o:budget=heads"),
              HasSubstr("h2o: budget must be one of uniform, layer, head, not 'heads'"));
  EXPECT_THAT(ErrorOf("tova:budget=head"),
              HasSubstr("tova: budget must be one of uniform, layer, not 'head'"));
  for (const std::string_view spec :
       {"streaming:keep=0", "knorm:keep=0", "keydiff:keep=-0.5", "h2o:recent=2", "tova:keep=2",
        "knorm:sinks=-1", "streaming:keep=1.5", "snapkv:window=65", "kivi:bits=3",
        "centroid:chunk=1", "centroid:r=1.1", "merge:base=tova", "merge:keep=0", "d2o:reach=0",
        ""}) {
    const auto made = MakeCompressor(spec);
    ASSERT_FALSE(made.has_value()) << spec;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace vericache::compress
