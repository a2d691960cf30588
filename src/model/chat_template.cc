#include "model/chat_template.h"

#include <chat.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "model/bounded_reader.h"
#include "model/chat_messages.h"
#include "model/gguf_file.h"
#include "model/json_depth.h"
#include "model/llama_log.h"
#include "model/text_cuts.h"

namespace vericache::model {
namespace {

constexpr uint64_t kMaxTokenBytes = uint64_t{1} << 16;
constexpr int32_t kNormalToken = 1;
constexpr int32_t kByteToken = 6;
constexpr uint32_t kPrivateUseBegin =
    0xe000;  // characters without a meaning, which marks are taken from
constexpr uint32_t kPrivateUseEnd = 0xf900;
constexpr size_t kMaxRoleBytes = 64;

std::string Utf8(uint32_t c) {  // of a private-use character
  return {static_cast<char>(0xe0u | c >> 12), static_cast<char>(0x80u | (c >> 6 & 0x3fu)),
          static_cast<char>(0x80u | (c & 0x3fu))};
}

bool IsBracketed(std::string_view token) {
  return token.size() > 2 && ((token.front() == '<' && token.back() == '>') ||
                              (token.front() == '[' && token.back() == ']'));
}

// Texts that may be control tokens: whatever the file does not call normal, and what looks like
// one. The tokenizer has the last word. Longest first, as libllama looks for them.
Result<std::vector<std::string>> ReadControlCandidates(const GgufFile& file) {
  const GgufValue* tokens = file.Find("tokenizer.ggml.tokens");
  if (tokens == nullptr || !tokens->is_array || tokens->type != GgufType::kString) {
    return MakeError(ErrorCode::kUnsupported,
                     "{}: has no tokenizer (key \"tokenizer.ggml.tokens\")", file.Path());
  }
  const GgufValue* types = file.Find("tokenizer.ggml.token_type");
  const bool has_types = types != nullptr && types->is_array && types->type == GgufType::kInt32 &&
                         types->n_elements == tokens->n_elements;
  BoundedReader token_reader(file.File(), tokens->offset);
  BoundedReader type_reader(file.File(), has_types ? types->offset : 0);
  std::vector<std::string> candidates;
  for (uint64_t i = 0; i < tokens->n_elements && token_reader.IsGood(); ++i) {
    std::string token = token_reader.ReadString("a token", kMaxTokenBytes);
    const int32_t type = has_types ? type_reader.Read<int32_t>("a token type") : kNormalToken;
    const bool is_plain = type == kNormalToken || type == kByteToken;
    if (token.size() > 1 && (!is_plain || IsBracketed(token)))
      candidates.push_back(std::move(token));
  }
  VC_RETURN_IF_ERROR(token_reader.GetStatus());
  VC_RETURN_IF_ERROR(type_reader.GetStatus());
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  return candidates;
}

// The text of a token a key names, or "".
std::string TokenText(const GgufFile& file, std::string_view id_key) {
  const Result<int64_t> id = file.Integer(id_key);
  if (!id || *id < 0) return {};
  return file.StringAt("tokenizer.ggml.tokens", static_cast<uint64_t>(*id)).value_or("");
}

void EraseAll(std::string& text, std::string_view what) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.erase(at, what.size());
}

// Control tokens that occur in a text, for the time of one call.
struct ControlToken {
  std::string text;
  TokenId id;
};

class JinjaTemplate final : public ChatTemplate {
 public:
  JinjaTemplate(common_chat_templates_ptr templates, std::vector<std::string> candidates)
      : templates_(std::move(templates)),
        candidates_(std::move(candidates)),
        writes_calls_(common_chat_templates_get_caps(templates_.get()).at("supports_tool_calls")) {}

  Result<std::vector<TokenId>> Apply(const std::vector<ChatMessage>& given,
                                     bool add_generation_prompt,
                                     const Tokenizer& tokenizer) const override {
    for (const ChatMessage& message : given) VC_RETURN_IF_ERROR(CheckRole(message.role));
    const std::vector<ChatMessage> messages = WithSafeCalls(given, &tokenizer);
    std::vector<ControlToken> inside;
    for (const ChatMessage& message : messages) CollectControl(message.content, tokenizer, inside);

    std::vector<TokenId> tokens;
    if (inside.empty()) {
      const Result<std::string> text = Render(messages, add_generation_prompt);
      if (!text) return tl::unexpected(text.error());
      tokens = tokenizer.EncodeWithControl(*text);
    } else {
      const std::string mark = FindMark(messages);
      std::vector<ChatMessage> shielded = messages;
      for (ChatMessage& message : shielded) message.content = Shield(message.content, inside, mark);
      const Result<std::string> text = Render(shielded, add_generation_prompt);
      if (!text) return tl::unexpected(text.error());
      tokens = EncodeShielded(*text, mark, tokenizer);
    }
    const TokenId bos = tokenizer.Bos();
    if (bos.value >= 0 && (tokens.empty() || tokens.front() != bos))
      tokens.insert(tokens.begin(), bos);
    return tokens;
  }

  Status OfferTools(const std::string& json, const Tokenizer& tokenizer) override {
    if (const int depth = JsonDepth(json); depth > kMaxJsonDepth) {
      return MakeError(ErrorCode::kUnsupported,
                       "the tools are nested {} deep; {} levels are the most", depth,
                       kMaxJsonDepth);
    }
    try {
      tools_ = common_chat_tools_parse_oaicompat(common_json::parse(json));
    } catch (const std::exception& error) {
      return MakeError(ErrorCode::kInvalidArgument, "the tools cannot be read: {}", error.what());
    }
    if (tools_.empty()) return MakeError(ErrorCode::kInvalidArgument, "there are no tools");
    // They are written into the template's own text, where marks might be escaped: none may need
    // one.
    std::vector<ControlToken> inside;
    for (const common_chat_tool& tool : tools_) {
      for (const std::string& text : {tool.name, tool.description, tool.parameters}) {
        CollectControl(text, tokenizer, inside);
      }
      if (inside.empty()) continue;
      return MakeError(ErrorCode::kInvalidArgument,
                       "the tool '{}' contains '{}', which is a control token of this model",
                       tool.name, inside.front().text);
    }
    const auto prompt = Render({{"user", "x"}}, /*add_generation_prompt=*/true);
    VC_RETURN_IF_ERROR(prompt);
    for (const common_chat_tool& tool : tools_) {
      if (!tool.name.empty() && prompt->find(tool.name) != std::string::npos) continue;
      return MakeError(ErrorCode::kUnsupported,
                       "the chat template does not show the tool '{}' to the model", tool.name);
    }
    return {};
  }

  Result<ParsedAnswer> Parse(const std::vector<ChatMessage>& messages,
                             const std::string& answer) const override {
    if (JsonDepthWithin(answer) > kMaxJsonDepth) {
      return MakeError(ErrorCode::kInvalidArgument, "the answer is nested more than {} levels deep",
                       kMaxJsonDepth);
    }
    // Nothing of this prompt is decoded: control text in it does no harm.
    const auto params =
        Evaluate(WithSafeCalls(messages, /*tokenizer=*/nullptr), /*add_generation_prompt=*/true);
    VC_RETURN_IF_ERROR(params);
    const LlamaErrors quiet;
    try {
      common_chat_parser_params how(*params);
      if (!params->parser.empty()) how.parser.load(params->parser);
      const common_chat_msg message = common_chat_parse(answer, /*is_partial=*/false, how);
      ParsedAnswer parsed{.content = message.content, .tool_calls = {}};
      for (const common_chat_tool_call& call : message.tool_calls) {
        common_json::parse(call.arguments);  // throws: half of them are none
        parsed.tool_calls.push_back({.name = call.name, .arguments = call.arguments});
      }
      return parsed;
    } catch (const std::exception&) {  // its message is the whole answer
      return MakeError(ErrorCode::kInvalidArgument,
                       "the answer breaks off in a tool call, or makes one that is no call");
    }
  }

 private:
  // A role becomes part of the template's text (some templates build a control token from it), so
  // it cannot be anything.
  static Status CheckRole(const std::string& role) {
    const bool is_word = !role.empty() && role.size() <= kMaxRoleBytes &&
                         std::all_of(role.begin(), role.end(), [](char c) {
                           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                  (c >= '0' && c <= '9') || c == '_' || c == '-';
                         });
    if (is_word) return {};
    return MakeError(ErrorCode::kInvalidArgument,
                     "the role \"{}\" is not a word of at most {} letters, digits, '_' and '-'",
                     role.substr(0, kMaxRoleBytes), kMaxRoleBytes);
  }

  void CollectControl(std::string_view text, const Tokenizer& tokenizer,
                      std::vector<ControlToken>& found) const {
    for (const std::string& candidate : candidates_) {
      if (text.find(candidate) == std::string_view::npos) continue;
      if (std::any_of(found.begin(), found.end(),
                      [&](const ControlToken& token) { return token.text == candidate; }))
        continue;
      const std::vector<TokenId> ids = tokenizer.EncodeWithControl(candidate);
      if (ids.size() == 1 && tokenizer.Encode(candidate) != ids)
        found.push_back({candidate, ids[0]});
    }
    std::stable_sort(found.begin(), found.end(), [](const ControlToken& a, const ControlToken& b) {
      return a.text.size() > b.text.size();
    });
  }

  // Calls reach the output through tojson and other detours, where a mark may be escaped or lost:
  // a call with control text in it becomes content, which is shielded. Without a tokenizer there is
  // no control text.
  std::vector<ChatMessage> WithSafeCalls(std::vector<ChatMessage> messages,
                                         const Tokenizer* tokenizer) const {
    for (ChatMessage& message : messages) {
      const bool are_safe =
          message.tool_calls.empty() ||
          (writes_calls_ &&
           std::all_of(message.tool_calls.begin(), message.tool_calls.end(),
                       [&](const ToolCall& call) { return IsSafe(call, tokenizer); }));
      if (are_safe) continue;
      message.content = std::move(message.as_written);
      message.tool_calls.clear();
    }
    return messages;
  }

  bool IsSafe(const ToolCall& call, const Tokenizer* tokenizer) const {
    const auto texts = TextsOf(call);
    std::vector<ControlToken> inside;
    if (!texts || tokenizer == nullptr) return texts.has_value();
    for (const std::string& text : *texts) CollectControl(text, *tokenizer, inside);
    return inside.empty();
  }

  // A character no message contains.
  static std::string FindMark(const std::vector<ChatMessage>& messages) {
    std::vector<std::string> texts;
    for (const ChatMessage& message : messages) {
      texts.push_back(message.content);
      for (const ToolCall& call : message.tool_calls) {
        for (std::string& text : TextsOf(call).value_or(std::vector<std::string>()))
          texts.push_back(std::move(text));
      }
    }
    for (uint32_t c = kPrivateUseBegin; c < kPrivateUseEnd; ++c) {
      const std::string mark = Utf8(c);
      const bool is_used = std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
        return text.find(mark) != std::string::npos;
      });
      if (!is_used) return mark;
    }
    return Utf8(kPrivateUseBegin);  // someone uses all 6400: theirs vanish inside a message with
                                    // control text
  }

  // A mark behind the first character of every control text keeps it from being one, whatever the
  // template does to the message.
  static std::string Shield(std::string_view text, const std::vector<ControlToken>& control,
                            std::string_view mark) {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      const bool starts_control =
          std::any_of(control.begin(), control.end(), [&](const ControlToken& token) {
            return text.substr(i, token.text.size()) == token.text;
          });
      const size_t end = CharacterBoundary(text, i + 1);
      out += text.substr(i, end - i);
      if (starts_control) out += mark;
      i = end;
    }
    return out;
  }

  // Requires: safe calls.
  Result<std::string> Render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const {
    auto params = Evaluate(messages, add_generation_prompt);
    VC_RETURN_IF_ERROR(params);
    return std::move(params->prompt);
  }

  Result<common_chat_params> Evaluate(const std::vector<ChatMessage>& messages,
                                      bool add_generation_prompt) const {
    const LlamaErrors quiet;
    common_chat_templates_inputs inputs;
    inputs.add_generation_prompt = add_generation_prompt;
    inputs.tools = tools_;
    inputs.parallel_tool_calls = true;
    inputs.force_pure_content = tools_.empty();
    inputs.messages = ToCommon(messages);
    try {
      return common_chat_templates_apply(templates_.get(), inputs);
    } catch (const std::exception& error) {
      return MakeError(ErrorCode::kInvalidArgument, "the chat template refuses these messages: {}",
                       error.what());
    }
  }

  // What is between two control tokens is tokenised as one text, the template's and the messages'
  // together, as it would be if no message contained control text.
  std::vector<TokenId> EncodeShielded(const std::string& text, std::string_view mark,
                                      const Tokenizer& tokenizer) const {
    std::vector<ControlToken> control;
    CollectControl(text, tokenizer, control);
    std::vector<TokenId> tokens;
    std::string plain;
    const auto flush = [&] {
      EraseAll(plain, mark);
      const std::vector<TokenId> ids = tokenizer.Encode(plain);
      tokens.insert(tokens.end(), ids.begin(), ids.end());
      plain.clear();
    };
    for (size_t i = 0; i < text.size();) {
      const auto here =
          std::find_if(control.begin(), control.end(), [&](const ControlToken& token) {
            return text.compare(i, token.text.size(), token.text) == 0;
          });
      if (here == control.end()) {
        plain += text[i++];
        continue;
      }
      flush();
      tokens.push_back(here->id);
      i += here->text.size();
    }
    flush();
    return tokens;
  }

  common_chat_templates_ptr templates_;
  std::vector<std::string> candidates_;
  bool writes_calls_;  // an answer's, in the conversation
  std::vector<common_chat_tool> tools_;
};

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::Load(const std::string& gguf_path,
                                                         const std::string& override_source) {
  const Result<GgufFile> file = GgufFile::Open(gguf_path);
  if (!file) return tl::unexpected(file.error());
  std::string source = override_source;
  if (source.empty()) {
    const Result<std::string> own = file->String("tokenizer.chat_template");
    if (!own) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "{}: has no chat template; give one, or use the raw prompt", gguf_path);
    }
    source = *own;
  }
  Result<std::vector<std::string>> candidates = ReadControlCandidates(*file);
  if (!candidates) return tl::unexpected(candidates.error());

  const LlamaErrors quiet;
  try {
    common_chat_templates_ptr templates =
        common_chat_templates_init(nullptr, source, TokenText(*file, "tokenizer.ggml.bos_token_id"),
                                   TokenText(*file, "tokenizer.ggml.eos_token_id"));
    return std::make_unique<JinjaTemplate>(std::move(templates), std::move(*candidates));
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInvalidArgument, "the chat template cannot be parsed: {}",
                     error.what());
  }
}

}  // namespace vericache::model
