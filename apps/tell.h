// What is said beside the answer: notes, progress, errors.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace vericache::apps {

// To stderr. Unlike fmt::print it does not throw when nobody reads there any more.
template <typename... Args>
void Tell(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace vericache::apps
