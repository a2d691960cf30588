// A file of tools is refused, or the chat template shows its tools to the model and calls of them
// are found in an answer.
#include "base/check.h"
#include "model/chat_template.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/tiny_tokenizer.h"

namespace vericache::fuzz {
namespace {

constexpr const char* kTemplate = R"({%- if tools %}
    {%- for tool in tools %}
        {{- tool | tojson }}
    {%- endfor %}
    {{- 'Call as <tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '[' + message.role + ']' }}
    {%- if message.content %}
        {{- message.content }}
    {%- endif %}
    {%- for tool_call in message.tool_calls or [] %}
        {{- '\n<tool_call>\n{"name": "' + tool_call.function.name + '", "arguments": ' }}
        {{- tool_call.function.arguments | tojson }}
        {{- '}\n</tool_call>' }}
    {%- endfor %}
{%- endfor %})";

model::ChatTemplate& Template() {
  static const std::unique_ptr<model::ChatTemplate> chat_template = [] {
    auto loaded = model::ChatTemplate::Load(
        testing_support::TinyModelFile(model::TinyModelSpec{}).Path(), kTemplate);
    VC_CHECK(loaded.has_value(), "{}", loaded.error().message);
    return *std::move(loaded);
  }();
  return *chat_template;
}

}  // namespace

bool RunOne(std::span<const uint8_t> input) {
  const Status offered = Template().OfferTools(std::string(AsText(input)), TinyTokenizer());
  if (!offered) {
    VC_CHECK(!offered.error().message.empty());
    return false;
  }
  std::vector<model::ChatMessage> messages = {{.role = "user", .content = "Hi"}};
  VC_CHECK(Template().Apply(messages, true, TinyTokenizer()).has_value());
  const auto parsed =
      Template().Parse(messages, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>");
  if (!parsed) {
    VC_CHECK(!parsed.error().message.empty());
    return true;
  }
  messages.push_back({.role = "assistant",
                      .content = parsed->content,
                      .tool_calls = parsed->tool_calls,
                      .as_written = "as written"});
  messages.push_back({.role = "tool", .content = std::string(AsText(input))});
  VC_CHECK(Template().Apply(messages, true, TinyTokenizer()).has_value());
  return true;
}

std::vector<std::string> Seeds() {
  return {R"([{"type":"function","function":{"name":"f","description":"Does.","parameters":)"
          R"({"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}}])",
          R"([{"type":"function","function":{"name":"weather_\u00e9","parameters":{}}},)"
          R"({"type":"function","function":{"name":"f","parameters":)"
          R"({"type":"object","properties":{"n":{"enum":[1,2.5,null]}}}}}])"};
}

}  // namespace vericache::fuzz
