#include "apps/acceptance_grid.h"

#include <fmt/format.h>

#include <algorithm>

#include "compress/registry.h"
#include "compress/spec.h"

namespace vericache::apps {
namespace {

constexpr int kUnpackedBits = 16;

// Whether the first method of the spec has the key, and leaves it to its default.
Result<bool> IsOpen(const std::string& spec, std::string_view key) {
  const auto methods = compress::ParseSpec(spec);
  VC_RETURN_IF_ERROR(methods);
  const compress::MethodSpec& first = methods->front();
  const bool is_given =
      std::any_of(first.pairs.begin(), first.pairs.end(),
                  [&](const compress::SpecPair& pair) { return pair.key == key; });
  const auto listed = compress::ListMethods();
  const auto method = std::find_if(listed.begin(), listed.end(),
                                   [&](const auto& info) { return info.name == first.name; });
  const std::string start = fmt::format("{}=", key);
  return !is_given && method != listed.end() &&
         ("," + method->parameters).find("," + start) != std::string::npos;
}

// The spec with a pair added to its first method.
std::string With(const std::string& spec, std::string_view key, const std::string& value) {
  const size_t plus = std::min(spec.find('+'), spec.size());
  const std::string first = spec.substr(0, plus);
  const char separator = first.find(':') == std::string::npos ? ':' : ',';
  return fmt::format("{}{}{}={}{}", first, separator, key, value, spec.substr(plus));
}

// The spec with every value of the key, or as it is if it is not open.
template <typename Value>
Result<std::vector<std::string>> WithEach(const std::string& spec, std::string_view key,
                                          const std::vector<Value>& values) {
  const auto is_open = IsOpen(spec, key);
  VC_RETURN_IF_ERROR(is_open);
  if (!*is_open) return std::vector{spec};
  std::vector<std::string> specs;
  for (const Value value : values) specs.push_back(With(spec, key, fmt::format("{}", value)));
  return specs;
}

// The spec alone and with KIVIs behind it.
Result<std::vector<std::string>> WithBits(const std::string& spec, const std::vector<int>& bits) {
  const auto compressor = compress::MakeCompressor(spec);
  VC_RETURN_IF_ERROR(compressor);
  const compress::Traits traits = (*compressor)->GetTraits();
  const bool is_packable = !traits.is_final && !traits.is_exact;
  std::vector<std::string> specs;
  for (const int n : bits) {
    if (n == kUnpackedBits || !is_packable) {
      specs.push_back((*compressor)->Spec());
      continue;
    }
    const auto packed = compress::MakeCompressor(fmt::format("{}+kivi:bits={}", spec, n));
    VC_RETURN_IF_ERROR(packed);
    specs.push_back((*packed)->Spec());
  }
  return specs;
}

}  // namespace

Result<std::vector<std::string>> ExpandGrid(const AcceptanceGrid& grid) {
  std::vector<std::string> bases = grid.compressors;
  if (bases.empty()) {
    for (const auto& method : compress::ListMethods()) bases.emplace_back(method.name);
  }
  std::vector<int> packed_bits = grid.bits;
  std::erase(packed_bits, kUnpackedBits);
  std::vector<std::string> specs;
  for (const std::string& base : bases) {
    const auto kept = WithEach(base, "keep", grid.keeps);
    VC_RETURN_IF_ERROR(kept);
    for (const std::string& spec : *kept) {
      const auto packed = WithEach(spec, "bits", packed_bits);
      VC_RETURN_IF_ERROR(packed);
      for (const std::string& one : *packed) {
        const auto all = WithBits(one, grid.bits);
        VC_RETURN_IF_ERROR(all);
        for (const std::string& each : *all) {
          if (std::find(specs.begin(), specs.end(), each) == specs.end()) specs.push_back(each);
        }
      }
    }
  }
  return specs;
}

}  // namespace vericache::apps
