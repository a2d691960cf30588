// Errors that are expected, by value: a missing file, a bad request, a full pool. Bugs use CHECK
// (base/check.h).
//
// We throw nothing; exceptions of libraries are caught in the one file that calls them. A message
// says what is wrong, which value, and what would be right.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace vericache {

enum class ErrorCode : uint8_t {
  kInvalidArgument,    // the caller's value is wrong, whatever the state
  kNotFound,           // a file, name or key that does not exist
  kDataLoss,           // a file or block that is truncated or corrupt
  kUnsupported,        // well-formed, but not something this build can do
  kResourceExhausted,  // a budget that cannot hold the request
  kCancelled,          // stopped by the user
  kInternal,           // a library failed
};

struct Error {
  ErrorCode code;
  std::string message;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

template <typename... Args>
[[nodiscard]] tl::unexpected<Error> MakeError(ErrorCode code, fmt::format_string<Args...> format,
                                              Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace vericache

// Leaves the enclosing function with the error of `expr`, a Status or Result.
#define VC_RETURN_IF_ERROR(expr)                                       \
  do {                                                                 \
    if (const auto& vc_status_ = (expr); !vc_status_.has_value()) {    \
      return ::tl::unexpected<::vericache::Error>(vc_status_.error()); \
    }                                                                  \
  } while (false)
