// Text in lines of a width, for help on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace vericache::apps {

// Breaks lines at blanks so that none is wider, but where a single word is. Line ends of the text
// stay; so does a default, "(default: x)", as a whole.
std::string Wrapped(std::string_view text, size_t width);

// Columns of the terminal that standard output is; 100 if it is none or does not say.
size_t OutputWidth();

}  // namespace vericache::apps
