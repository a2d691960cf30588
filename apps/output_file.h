// Files that a command leaves behind: whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace vericache::apps {

// Whether the file could be written at the end, as far as that can be told at the beginning,
// without leaving anything. Errors: kNotFound with the reason.
Status CheckReplaceable(const std::string& path);
// What was there before stays until the text is on the disk. Errors: kNotFound with the reason.
Status ReplaceFile(const std::string& path, std::string_view text);

}  // namespace vericache::apps
