// The text form of a compressor, and the reader that methods take their parameters from.
//
//   spec   = method { "+" method }
//   method = name [ ":" key "=" value { "," key "=" value } ]
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vericache::compress {

struct SpecPair {
  std::string_view key;
  std::string_view value;
};

// One method of a chain. Views the text it was parsed from.
struct MethodSpec {
  std::string_view name;
  std::vector<SpecPair> pairs;
};

// Errors: kInvalidArgument for text that is not a spec, with the form it should have.
Result<std::vector<MethodSpec>> ParseSpec(std::string_view text);

struct RealRange {
  double preset = 0.0;
  double low = 0.0;  // included
  double high = 1.0;
};

struct IntRange {
  int preset = 0;
  int low = 0;
  int high = 1;
};

// A method reads its parameters by name in its constructor; whoever made the reader then asks
// Check() whether all of them were good. The first complaint wins.
class Parameters {
 public:
  explicit Parameters(const MethodSpec& method) : method_(method) {}

  // A share in (0, 1].
  double Share(std::string_view key, double preset);
  double Real(std::string_view key, const RealRange& range);
  int Int(std::string_view key, const IntRange& range);
  int Choice(std::string_view key, int preset, std::initializer_list<int> choices);
  // Which of the words; the first is the default.
  int Word(std::string_view key, std::initializer_list<std::string_view> words);

  // Every parameter read so far: "keep=0.25,window=64".
  const std::string& Listing() const { return listing_; }
  // The canonical spec of the method.
  std::string Spec() const;
  // Errors: kInvalidArgument for a bad value or a key that no one read, with the keys there are.
  Status Check() const;

 private:
  const SpecPair* Find(std::string_view key);
  void Refuse(std::string_view key, std::string_view value, std::string_view allowed);
  void List(std::string_view key, std::string_view value);

  const MethodSpec& method_;
  std::string listing_;
  std::vector<std::string_view> keys_;
  std::string complaint_;
};

}  // namespace vericache::compress
