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

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;
  // The model's own template, or the Jinja source given.
  // Errors: kInvalidArgument with the template engine's message.
  static Result<std::unique_ptr<ChatTemplate>> Load(const std::string& gguf_path,
                                                    const std::string& override_source);

  // Errors: kInvalidArgument if the template raises (its message), e.g. for two user turns in a
  // row.
  virtual Result<std::vector<TokenId>> Apply(const std::vector<ChatMessage>& messages,
                                             bool add_generation_prompt,
                                             const Tokenizer& tokenizer) const = 0;
};

}  // namespace vericache::model
