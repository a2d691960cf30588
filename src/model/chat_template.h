// Chat messages to prompt tokens, by llama-common's Jinja engine. Message content is tokenised
// apart from the template's own text, so that "<|im_end|>" in a message stays text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/tokenizer.h"

namespace vericache::model {

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON, as the model wrote it
};

struct ChatMessage {
  std::string role;     // "system", "user", "assistant"; "tool": the result of a call
  std::string content;  // of an answer: what is no call
  std::vector<ToolCall> tool_calls =
      {};  // of an answer, answered in order by the results behind it
  // Of an answer with calls: all of it, calls included. It is the content wherever the calls cannot
  // be calls: see Apply.
  std::string as_written = {};
};

struct ParsedAnswer {
  std::string content;  // what is no call
  std::vector<ToolCall> tool_calls;
};

class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;
  // The model's own template, or the Jinja source given.
  // Errors: kInvalidArgument with the template engine's message.
  static Result<std::unique_ptr<ChatTemplate>> Load(const std::string& gguf_path,
                                                    const std::string& override_source);

  // The template writes calls with its own markers, unless it has none, or a call has the text of a
  // control token in it, or arguments that are no JSON: such an answer is text, as it was written.
  // Errors: kInvalidArgument if the template raises (its message), e.g. for two user turns in a
  // row.
  virtual Result<std::vector<TokenId>> Apply(const std::vector<ChatMessage>& messages,
                                             bool add_generation_prompt,
                                             const Tokenizer& tokenizer) const = 0;

  // Tools that the messages to come may call: a JSON array as OpenAI's interface has it.
  // Errors: kInvalidArgument for what is none, or has the text of a control token in it;
  //         kUnsupported if the template does not show them to the model.
  virtual Status OfferTools(const std::string& json, const Tokenizer& tokenizer) = 0;
  // The calls in an answer to these messages. Errors: kInvalidArgument if it breaks off in one, or
  // is nested too deep (json_depth.h).
  virtual Result<ParsedAnswer> Parse(const std::vector<ChatMessage>& messages,
                                     const std::string& answer) const = 0;
};

}  // namespace vericache::model
