// A compressor spec is refused or made, and what was made says a spec that makes the same.
#include "base/check.h"
#include "compress/registry.h"
#include "tests/fuzz/fuzz_target.h"

namespace vericache::fuzz {

bool RunOne(std::span<const uint8_t> input) {
  const auto compressor = compress::MakeCompressor(AsText(input));
  if (!compressor) {
    VC_CHECK(!compressor.error().message.empty());
    return false;
  }
  const std::string spec = (*compressor)->Spec();
  const auto again = compress::MakeCompressor(spec);
  VC_CHECK(again.has_value() && (*again)->Spec() == spec, "{}", spec);
  return true;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {"snapkv:keep=0.25,window=32+kivi:bits=4", "hostile"};
  for (const compress::MethodInfo& method : compress::ListMethods()) {
    const std::string name(method.name);
    seeds.push_back(method.parameters.empty() ? name : name + ":" + method.parameters);
  }
  return seeds;
}

}  // namespace vericache::fuzz
