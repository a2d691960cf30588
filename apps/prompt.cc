#include "apps/prompt.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "apps/text_file.h"
#include "decode/utf8.h"

namespace vericache::apps {
namespace {

// The Jinja source itself, or that of the file named.
Result<std::string> TemplateSource(const std::string& source_or_path) {
  const bool is_source = source_or_path.find("{{") != std::string::npos ||
                         source_or_path.find("{%") != std::string::npos;
  return is_source ? Result<std::string>(source_or_path) : ReadTextFile(source_or_path);
}

// Bytes of the well-formed sequence at the start of `text`; 0 if there is none.
size_t SequenceLength(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0x80 ? 2 : 1;
  return text.size() >= length && decode::IsUtf8(text.substr(0, length)) ? length : 0;
}

}  // namespace

std::string Cleaned(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  size_t kept = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    text[kept++] = text[i];
  }
  text.resize(kept);
  return text;
}

std::optional<size_t> FirstInvalidUtf8(std::string_view text) {
  for (size_t offset = 0; offset < text.size();) {
    const size_t length = SequenceLength(text.substr(offset, 4));
    if (length == 0) return offset;
    offset += length;
  }
  return std::nullopt;
}

Result<std::string> CheckedText(std::string raw, std::string_view name) {
  std::string text = Cleaned(std::move(raw));
  if (const auto offset = FirstInvalidUtf8(text)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{} is not valid UTF-8: byte {:#04x} at offset {}", name,
                     static_cast<unsigned char>(text[*offset]), *offset);
  }
  return text;
}

Result<std::string> ReadUserText(const RunOptions& options) {
  std::optional<std::string> path = options.file;
  if (!path && !options.prompt) path = "-";
  std::string text;
  if (path) {
    auto raw = ReadTextFile(*path);
    if (!raw) return tl::unexpected(raw.error());
    auto document = CheckedText(std::move(*raw), *path == "-" ? "standard input" : *path);
    if (!document) return tl::unexpected(document.error());
    text = std::move(*document);
  }
  if (options.prompt) {
    auto question = CheckedText(*options.prompt, "the prompt (-p)");
    if (!question) return tl::unexpected(question.error());
    if (!text.empty() && !question->empty()) text += text.ends_with('\n') ? "\n" : "\n\n";
    text += *question;
  }
  if (text.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "the prompt is empty; give a text with -p, -f or standard input");
  }
  return text;
}

Result<std::unique_ptr<model::ChatTemplate>> LoadTemplate(const RunOptions& options,
                                                          const std::string& model_path,
                                                          const model::Tokenizer& tokenizer) {
  std::string source;
  if (options.chat_template) {
    auto given = TemplateSource(*options.chat_template);
    if (!given) return tl::unexpected(given.error());
    source = std::move(*given);
  }
  auto chat_template = model::ChatTemplate::Load(model_path, source);
  if (!chat_template || !options.tools) return chat_template;
  const auto tools = ReadTextFile(*options.tools);
  VC_RETURN_IF_ERROR(tools);
  VC_RETURN_IF_ERROR((*chat_template)->OfferTools(*tools, tokenizer));
  return chat_template;
}

Result<std::vector<model::ChatMessage>> FirstMessages(const RunOptions& options) {
  std::vector<model::ChatMessage> messages;
  if (!options.system_prompt) return messages;
  auto system = CheckedText(*options.system_prompt, "the system message (--system-prompt)");
  if (!system) return tl::unexpected(system.error());
  messages.push_back({"system", std::move(*system)});
  return messages;
}

namespace {

struct Conversation {
  std::unique_ptr<model::ChatTemplate> chat_template;
  std::vector<model::ChatMessage> messages;
};

Result<Conversation> BeginConversation(const RunOptions& options, const std::string& user_text,
                                       const std::string& model_path,
                                       const model::Tokenizer& tokenizer) {
  auto chat_template = LoadTemplate(options, model_path, tokenizer);
  VC_RETURN_IF_ERROR(chat_template);
  auto messages = FirstMessages(options);
  VC_RETURN_IF_ERROR(messages);
  messages->push_back({"user", user_text});
  return Conversation{*std::move(chat_template), *std::move(messages)};
}

}  // namespace

Result<std::vector<TokenId>> PromptTokens(const RunOptions& options, const std::string& user_text,
                                          const std::string& model_path,
                                          const model::Tokenizer& tokenizer) {
  if (options.is_raw) {
    std::vector<TokenId> tokens = tokenizer.Encode(user_text);
    if (tokenizer.Bos().value >= 0) tokens.insert(tokens.begin(), tokenizer.Bos());
    return tokens;
  }
  const auto conversation = BeginConversation(options, user_text, model_path, tokenizer);
  VC_RETURN_IF_ERROR(conversation);
  return conversation->chat_template->Apply(conversation->messages,
                                            /*add_generation_prompt=*/true, tokenizer);
}

Result<model::ParsedAnswer> ParseAnswer(const RunOptions& options, const std::string& user_text,
                                        const std::string& model_path,
                                        const model::Tokenizer& tokenizer,
                                        const std::string& answer) {
  const auto conversation = BeginConversation(options, user_text, model_path, tokenizer);
  VC_RETURN_IF_ERROR(conversation);
  return conversation->chat_template->Parse(conversation->messages, answer);
}

}  // namespace vericache::apps
