// What the user types, a message at a time: with editing and history on a terminal, plainly
// elsewhere. A line that ends in a backslash goes on in the next one.
//
// Threads: Read from one thread; Ctrl-C may come at any time (interrupts.h) and discards what was
// typed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/interrupts.h"

namespace vericache::apps {

class LineReader {
 public:
  // On a terminal, Ctrl-C while nothing runs is ours as long as this object lives.
  explicit LineReader(Interrupts& interrupts);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool IsTerminal() const { return editor_ != nullptr; }
  // The next message without its line's end; nullopt at the end of the input (Ctrl-D).
  std::optional<std::string> Read();

 private:
  class Editor;
  // nullopt at the end; is_discarded: Ctrl-C.
  std::optional<std::string> ReadLine(const char* prompt, bool& is_discarded);

  Interrupts& interrupts_;
  std::unique_ptr<Editor> editor_;  // null if standard input is no terminal
};

}  // namespace vericache::apps
