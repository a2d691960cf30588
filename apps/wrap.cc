#include "apps/wrap.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace vericache::apps {
namespace {

constexpr std::string_view kDefault = "(default: ";
constexpr size_t kUsualWidth = 100;

// Bytes up to the blank that ends the first word.
size_t WordLength(std::string_view text) {
  const size_t from = text.starts_with(kDefault) ? kDefault.size() : 0;
  return std::min(text.find(' ', from), text.size());
}

void WrapLine(std::string_view line, size_t width, std::string& out) {
  size_t column = 0;
  for (bool is_first = true;; is_first = false) {
    const size_t length = WordLength(line);
    if (!is_first) {
      const bool fits = column + 1 + length <= width;
      out += fits ? ' ' : '\n';
      column = fits ? column + 1 : 0;
    }
    out += line.substr(0, length);
    column += length;
    if (length == line.size()) return;
    line.remove_prefix(length + 1);
  }
}

}  // namespace

std::string Wrapped(std::string_view text, size_t width) {
  std::string out;
  while (true) {
    const size_t end = std::min(text.find('\n'), text.size());
    WrapLine(text.substr(0, end), width, out);
    if (end == text.size()) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

size_t OutputWidth() {
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kUsualWidth;
}

}  // namespace vericache::apps
