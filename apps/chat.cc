#include "apps/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "apps/answer.h"
#include "apps/chat_commands.h"
#include "apps/commands.h"
#include "apps/generation.h"
#include "apps/line_reader.h"
#include "apps/prompt.h"
#include "apps/summary.h"
#include "apps/tell.h"
#include "apps/tool_calls.h"

namespace vericache::apps {
namespace {

void Say(std::string_view text) { Tell("{}\n", text); }

class Chat {
 public:
  Chat(const RunOptions& options, std::unique_ptr<model::ChatTemplate> chat_template,
       std::vector<model::ChatMessage> first_messages, engine::Engine& engine,
       Interrupts& interrupts)
      : options_(options),
        template_(std::move(chat_template)),
        first_messages_(std::move(first_messages)),
        messages_(first_messages_),
        engine_(engine),
        interrupts_(interrupts) {}

  Result<int> Run(const std::optional<std::string>& first) {
    LineReader reader(interrupts_);
    if (reader.IsTerminal()) {
      Say(
          fmt::format("{}, mode {}, {}. /help lists the commands; Ctrl-C ends an answer, Ctrl-D "
                      "the chat.",
                      options_.machine.model, options_.mode, options_.compressor));
    }
    if (first) TakeMessage(*first);
    while (!is_over_ && !interrupts_.WasInterrupted()) {
      const auto line = reader.Read();
      if (!line) break;
      Take(*line);
    }
    if (reader.IsTerminal()) std::fputc('\n', stderr);
    if (interrupts_.WasInterrupted()) return kExitInterrupted;
    VC_RETURN_IF_ERROR(output_);
    return 0;
  }

 private:
  void Take(const std::string& line) {
    if (line.find_first_not_of(" \t\n") == std::string::npos) return;
    const auto command = ParseChatCommand(line);
    if (!command) return Say(command.error().message);
    if (*command) return Obey(**command);
    TakeMessage(line);
  }

  void TakeMessage(const std::string& raw) {
    auto text = CheckedText(raw, "the message");
    if (!text) return Say(text.error().message);
    AnswerTo({"user", *std::move(text)});
  }

  // The answer begins when no call waits any more.
  Status TakeResult(const std::string& raw) {
    const size_t n_open = OpenCalls(messages_).size();
    if (n_open == 0) return MakeError(ErrorCode::kInvalidArgument, "no call waits for a result");
    auto text = CheckedText(raw, "the result");
    VC_RETURN_IF_ERROR(text);
    model::ChatMessage result{"tool", *std::move(text)};
    if (n_open == 1) {
      AnswerTo(std::move(result));
    } else {
      messages_.push_back(std::move(result));
      SayWhatWaits();
    }
    return {};
  }

  void SayWhatWaits() {
    const auto calls = OpenCalls(messages_);
    if (calls.empty()) return;
    Say(fmt::format("/result TEXT answers {}{}; a message goes on without a result",
                    calls.front().name,
                    calls.size() > 1 ? fmt::format(", the first of {} calls", calls.size()) : ""));
  }

  void Obey(const ChatCommand& command) {
    using Kind = ChatCommand::Kind;
    Status status;
    switch (command.kind) {
      case Kind::kHelp:
        Tell("{}", ChatHelp());
        break;
      case Kind::kSetting:
        status = ApplySetting(command, options_);
        break;
      case Kind::kResult:
        status = TakeResult(command.argument);
        break;
      case Kind::kSave:
        status = Save(command.argument);
        break;
      case Kind::kLoad:
        status = Load(command.argument);
        break;
      case Kind::kStats:
        Say(stats_.empty() ? "no answer yet" : stats_);
        break;
      case Kind::kClear:
        messages_ = first_messages_;
        kept_.reset();
        break;
      case Kind::kExit:
        is_over_ = true;
        break;
    }
    if (!status) Say(status.error().message);
  }

  Status Save(const std::string& path) {
    if (!kept_) return MakeError(ErrorCode::kInvalidArgument, "there is nothing to save yet");
    VC_RETURN_IF_ERROR(
        engine_.Save(*kept_, static_cast<int>(kept_->tokens.size()), NoteOf(messages_), path));
    Say(fmt::format("saved {} messages and the KV of {} tokens", messages_.size(),
                    kept_->tokens.size()));
    return {};
  }

  // What cannot be loaded leaves the conversation as it is.
  Status Load(const std::string& path) {
    auto saved = engine_.Restore(path);
    VC_RETURN_IF_ERROR(saved);
    auto messages = MessagesOf(saved->note);
    if (!messages) {
      return MakeError(ErrorCode::kInvalidArgument, "'{}' holds a prompt, not a conversation",
                       path);
    }
    messages_ = std::move(*messages);
    kept_ = std::move(saved->kept);
    Say(fmt::format("loaded {} messages and the KV of {} tokens", messages_.size(),
                    kept_->tokens.size()));
    ShowCalls(OpenCalls(messages_));
    SayWhatWaits();
    return {};
  }

  // The next turn's prompt. Errors: those of the template; kInvalidArgument if it is too long.
  Result<std::vector<TokenId>> Prompt() {
    auto prompt =
        template_->Apply(messages_, /*add_generation_prompt=*/true, engine_.GetTokenizer());
    if (!prompt) return prompt;
    if (static_cast<int>(prompt->size()) < engine_.ContextSize()) return prompt;
    return MakeError(ErrorCode::kInvalidArgument,
                     "the conversation has {} tokens, the context holds {}; /clear begins anew",
                     prompt->size(), engine_.ContextSize());
  }

  // An answer that failed, or was ended before its first word, leaves no message behind: what it
  // was to answer is gone, and calls wait for their results again.
  void AnswerTo(model::ChatMessage message) {
    messages_.push_back(std::move(message));
    const auto generation = GenerateTurn();
    if (!generation) Say(generation.error().message);
    if (generation && !generation->tokens.empty()) {
      TakeAnswer(generation->text);
    } else {
      DropQuestion();
    }
    SayWhatWaits();
  }

  void TakeAnswer(const std::string& text) {
    model::ParsedAnswer parsed;
    if (options_.tools) parsed = PartsOrAll(template_->Parse(messages_, text), text);
    ShowCalls(parsed.tool_calls);
    messages_.push_back(AnswerMessage(std::move(parsed), text));
  }

  void DropQuestion() {
    const bool is_result = messages_.back().role == "tool";
    do {
      messages_.pop_back();
    } while (is_result && messages_.back().role == "tool");
  }

  Result<Generation> GenerateTurn() {
    auto request = MakeRequest(options_);
    if (!request) return tl::unexpected(request.error());
    auto prompt = Prompt();
    if (!prompt) return tl::unexpected(prompt.error());
    request->prompt = std::move(*prompt);
    request->keep_kv = true;
    const decode::Request asked = *request;
    request->prefix = std::move(kept_);  // nobody else holds it: no block is copied
    Answer answer(asked.prompt, engine_.GetTokenizer(), /*is_quiet=*/false);
    auto generation = Generate(engine_, std::move(*request), answer.GetWatcher(), interrupts_);
    answer.Finish();
    output_ = answer.GetStatus();
    if (!output_) is_over_ = true;
    if (!generation) return generation;
    kept_ = std::move(generation->kept);
    stats_ = Summary(*generation, asked);
    Say(TurnLine(*generation, asked));
    return generation;
  }

  RunOptions options_;
  std::unique_ptr<model::ChatTemplate> template_;
  std::vector<model::ChatMessage> first_messages_;  // the system message, if any
  std::vector<model::ChatMessage> messages_;
  std::shared_ptr<const decode::KeptKv> kept_;
  std::string stats_;  // of the last answer
  engine::Engine& engine_;
  Interrupts& interrupts_;
  bool is_over_ = false;
  Status output_;  // of the last answer
};

}  // namespace

Result<int> RunChat(const RunOptions& options, const std::optional<std::string>& first,
                    const std::string& model_path, engine::Engine& engine, Interrupts& interrupts) {
  auto chat_template = LoadTemplate(options, model_path, engine.GetTokenizer());
  if (!chat_template) return tl::unexpected(chat_template.error());
  auto messages = FirstMessages(options);
  if (!messages) return tl::unexpected(messages.error());
  Chat chat(options, std::move(*chat_template), std::move(*messages), engine, interrupts);
  return chat.Run(first);
}

}  // namespace vericache::apps
