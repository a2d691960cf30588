// Goal: the depth is that of the values, whatever stands in strings, and no less than what a reader
// would open before it gives up.
// Method: texts by hand; depths against an independent parser's on random values.
#include "model/json_depth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/property.h"

namespace vericache::model {
namespace {

using Json = nlohmann::json;

TEST(JsonDepth, CountsWhatIsOpenAtOnce) {
  for (const auto& [text, depth] : {std::pair{"", 0},
                                    {"7", 0},
                                    {"\"[[[\"", 0},
                                    {"\"\\\"[[[\"", 0},
                                    {"[]", 1},
                                    {"[[],[],[]]", 2},
                                    {"{\"a\": {\"b\": [1]}}", 3},
                                    {"[\"]]]\", [[1]]]", 3},
                                    {"]]]][[", 0},
                                    {"[[[", 3}}) {
    EXPECT_EQ(JsonDepth(text), depth) << text;
  }
  EXPECT_EQ(JsonDepth(std::string(100'000, '[')), 100'000);
}

int DepthOf(const Json& value) {
  int inner = 0;
  for (const Json& item : value) {
    if (value.is_structured()) inner = std::max(inner, DepthOf(item));
  }
  return value.is_structured() ? 1 + inner : 0;
}

Json RandomValue(testing_support::Rng& rng, int depth) {
  const int kind = rng.In(0, depth > 0 ? 3 : 1);
  if (kind == 0) return rng.In(-9, 9);
  if (kind == 1) return std::string("{\"[]\\ }").substr(static_cast<size_t>(rng.In(0, 7)));
  Json value = kind == 2 ? Json::array() : Json::object();
  for (int i = rng.In(0, 3); i > 0; --i) {
    Json inner = RandomValue(rng, depth - 1);
    if (kind == 2) {
      value.push_back(std::move(inner));
    } else {
      value[std::to_string(i) + "\"]"] = std::move(inner);
    }
  }
  return value;
}

PROPERTY(JsonDepth, IsAParsersDepth, 300) {
  const Json value = RandomValue(rng, 6);
  EXPECT_EQ(JsonDepth(value.dump()), DepthOf(value)) << value;
}

TEST(JsonDepth, WithinATextItIsThatOfAnyReader) {
  for (const auto& [text, depth] : {std::pair{"", 0},
                                    {"It's [1] and {2}.", 1},
                                    {"]]]} [[", 2},
                                    {"5\" pipe: [[\"]]]\"]]", 2},
                                    {"\\\" [[[", 3},
                                    {"[\"]\",[\"]\",[\"]\",[", 4}}) {
    EXPECT_EQ(JsonDepthWithin(text), depth) << text;
  }
}

PROPERTY(JsonDepth, WithinATextItIsNoLess, 300) {
  const std::string json = RandomValue(rng, 6).dump();
  const std::string before = std::string("\\\" ]}\"'\\").substr(static_cast<size_t>(rng.In(0, 8)));
  EXPECT_GE(JsonDepthWithin(before + json + before), JsonDepth(json)) << before << json;
}

}  // namespace
}  // namespace vericache::model
