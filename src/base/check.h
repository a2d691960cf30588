// CHECK: a bug ends the process with the values that show it, in every build. DCHECK: the same, for
// hot loops, in Dev builds.
#pragma once

#include <fmt/format.h>

#include <string>

namespace vericache {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& detail);
}  // namespace vericache

#define VC_CHECK(condition, ...)                                                               \
  do {                                                                                         \
    if (!(condition)) [[unlikely]] {                                                           \
      ::vericache::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
    }                                                                                          \
  } while (false)

#if defined(VERICACHE_DCHECK)
#define VC_DCHECK(condition, ...) VC_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#else
#define VC_DCHECK(condition, ...) \
  do {                            \
  } while (false)
#endif
