#include "compress/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "compress/chain.h"
#include "compress/method.h"

namespace vericache::compress {

// The methods, in listing order: each name is that of a constant in the method's own file.
#define VC_METHODS(METHOD) \
  METHOD(kIdentity)        \
  METHOD(kStreaming)       \
  METHOD(kSnapKv)          \
  METHOD(kH2o)             \
  METHOD(kTova)            \
  METHOD(kExpected)        \
  METHOD(kKnorm)           \
  METHOD(kKeyDiff)         \
  METHOD(kMerge)           \
  METHOD(kD2o)             \
  METHOD(kKivi)            \
  METHOD(kRotated)         \
  METHOD(kCentroid)        \
  METHOD(kHostile)

#define VC_DECLARE(method) extern const Method method;
VC_METHODS(VC_DECLARE)
#undef VC_DECLARE

namespace {

std::vector<const Method*> AllMethods() {
#define VC_ADDRESS(method) &method,
  return {VC_METHODS(VC_ADDRESS)};
#undef VC_ADDRESS
}

Result<std::unique_ptr<Compressor>> MakeMethod(const MethodSpec& spec) {
  std::vector<std::string_view> listed;
  for (const Method* method : AllMethods()) {
    if (method->is_listed) listed.push_back(method->name);
    if (method->name != spec.name) continue;
    Parameters parameters(spec);
    std::unique_ptr<Compressor> compressor = method->make(parameters);
    VC_RETURN_IF_ERROR(parameters.Check());
    return compressor;
  }
  return MakeError(ErrorCode::kInvalidArgument, "there is no compressor '{}'; there are {}",
                   spec.name, fmt::join(listed, ", "));
}

}  // namespace

Result<std::unique_ptr<Compressor>> MakeCompressor(std::string_view spec) {
  auto methods = ParseSpec(spec);
  VC_RETURN_IF_ERROR(methods);
  std::vector<std::unique_ptr<Compressor>> stages;
  for (const MethodSpec& method : *methods) {
    auto stage = MakeMethod(method);
    VC_RETURN_IF_ERROR(stage);
    stages.push_back(std::move(*stage));
  }
  if (stages.size() == 1) return std::move(stages.front());
  return MakeChain(std::move(stages));
}

std::vector<MethodInfo> ListMethods() {
  std::vector<MethodInfo> methods;
  for (const Method* method : AllMethods()) {
    if (!method->is_listed) continue;
    const MethodSpec bare{.name = method->name, .pairs = {}};
    Parameters parameters(bare);
    method->make(parameters);
    methods.push_back({method->name, method->summary, parameters.Listing()});
  }
  return methods;
}

}  // namespace vericache::compress
