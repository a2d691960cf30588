// The note of a saved conversation is refused, or its messages give the note again.
#include "apps/chat_commands.h"
#include "base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace vericache::fuzz {

bool RunOne(std::span<const uint8_t> input) {
  const auto messages = apps::MessagesOf(std::string(AsText(input)));
  if (!messages) return false;
  const std::string note = apps::NoteOf(*messages);
  const auto again = apps::MessagesOf(note);
  VC_CHECK(again && apps::NoteOf(*again) == note);
  return true;
}

std::vector<std::string> Seeds() {
  return {apps::NoteOf({{.role = "system", .content = "Be brief."},
                        {.role = "user", .content = "\xe2\x82\xac \"quoted\"\n"},
                        {.role = "assistant", .content = ""}}),
          apps::NoteOf({{.role = "assistant",
                         .content = "Wait.",
                         .tool_calls = {{"weather", R"({"city": "Paris"})"}, {"clock", "{}"}},
                         .as_written = "Wait. <call>"},
                        {.role = "tool", .content = "rain"}}),
          "[]"};
}

}  // namespace vericache::fuzz
