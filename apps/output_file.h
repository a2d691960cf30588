// What a command writes: to standard output, and files that it leaves behind whole or not at all.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vericache::apps {

inline constexpr std::string_view kStandardOutput = "standard output";

// What a failed write to `name` is: kCancelled for EPIPE (its reader went away), kNotFound with the
// reason for every other errno.
Error WriteError(std::string_view name, int error_number);
// To standard output or standard error, at once; unlike fmt::print it does not throw. Standard
// error never fails: who could be told? Errors: those of WriteError.
Status Print(std::FILE* out, std::string_view text);

// Whether the file could be written at the end, as far as that can be told at the beginning,
// without leaving anything. Errors: kNotFound with the reason; kInvalidArgument for a name that is
// empty, or of what is no regular file.
Status CheckReplaceable(const std::string& path);
// What was there before stays until the text is on the disk. Errors: kNotFound with the reason.
Status ReplaceFile(const std::string& path, std::string_view text);

}  // namespace vericache::apps
