// From what the user gave (-p, -f, standard input) to prompt tokens: reads, cleans, checks and
// wraps in the chat template.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run_options.h"
#include "base/ids.h"
#include "base/result.h"
#include "model/chat_template.h"
#include "model/tokenizer.h"

namespace vericache::apps {

// The user's text: the document, a blank line, the question; either may be missing.
// Standard input is read for `-f -`, or when neither -p nor -f is given.
// Errors:   kNotFound, kDataLoss for files; kInvalidArgument for an empty text, one that is no
// UTF-8 (with the
//          offset of the first wrong byte), or one larger than any context could hold.
Result<std::string> ReadUserText(const RunOptions& options);

// The tokens of the prompt: chat template, system message and user text; with --raw the text itself
// behind BOS. Errors: kInvalidArgument from the template engine; those of files.
Result<std::vector<TokenId>> PromptTokens(const RunOptions& options, const std::string& user_text,
                                          const std::string& model_path,
                                          const model::Tokenizer& tokenizer);

// The tool calls in an answer to that prompt. Errors: those of ChatTemplate.
Result<model::ParsedAnswer> ParseAnswer(const RunOptions& options, const std::string& user_text,
                                        const std::string& model_path,
                                        const model::Tokenizer& tokenizer,
                                        const std::string& answer);

// What PromptTokens is made of, for conversations: the template of the model or of --chat-template,
// which offers the tools of --tools; and the system message, if there is one.
Result<std::unique_ptr<model::ChatTemplate>> LoadTemplate(const RunOptions& options,
                                                          const std::string& model_path,
                                                          const model::Tokenizer& tokenizer);
Result<std::vector<model::ChatMessage>> FirstMessages(const RunOptions& options);

// The text without what editors leave in it.
// Errors: kInvalidArgument with the offset of the first byte that is no UTF-8; name: of the text.
Result<std::string> CheckedText(std::string raw, std::string_view name);

// Drops a byte order mark and turns CRLF into LF: what editors on other systems leave in a text.
std::string Cleaned(std::string text);
// The offset of the first byte that is no part of well-formed UTF-8; nullopt if there is none.
std::optional<size_t> FirstInvalidUtf8(std::string_view text);

}  // namespace vericache::apps
