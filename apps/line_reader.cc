#include "apps/line_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <iostream>

#include "base/check.h"

namespace vericache::apps {
namespace {

constexpr int kHistorySize = 1000;
constexpr wchar_t kKillLine = L'\x15';  // Ctrl-U: forgets the line

// The editor counts characters as the locale does; ours are always UTF-8.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

class LineReader::Editor {
 public:
  Editor() : wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    VC_CHECK(wake_fd_ >= 0, "errno {}", errno);
    UseUtf8();
    std::FILE* out = isatty(STDOUT_FILENO) == 1 ? stdout : stderr;
    edit_ = el_init("vericache", stdin, out, stderr);
    history_ = history_init();
    VC_CHECK(edit_ != nullptr && history_ != nullptr, "no memory for a line of input");
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistorySize);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_SIGNAL, 0);
    el_set(edit_, EL_PROMPT, &Editor::Prompt);
    el_set(edit_, EL_GETCFN, &Editor::GetChar);
    el_set(edit_, EL_HIST, history, history_);
  }
  ~Editor() {
    el_end(edit_);
    history_end(history_);
    close(wake_fd_);
  }
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  // From any thread: the line under way is discarded.
  void Discard() {
    const uint64_t one = 1;
    static_cast<void>(!write(wake_fd_, &one, sizeof(one)));  // full: a discard is pending anyway
  }

  std::optional<std::string> ReadLine(const char* prompt, bool& is_discarded) {
    prompt_ = prompt;
    discarding_ = 0;
    Forget();
    int n_chars = 0;
    const char* text = el_gets(edit_, &n_chars);
    is_discarded = discarding_ > 0;
    if (text == nullptr || n_chars <= 0) return std::nullopt;
    std::string line(text, static_cast<size_t>(n_chars));
    if (line.ends_with('\n')) line.pop_back();
    HistEvent event;
    if (!line.empty()) history(history_, &event, H_ENTER, line.c_str());
    return line;
  }

 private:
  static Editor& Of(EditLine* edit) {
    Editor* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return *self;
  }
  static char* Prompt(EditLine* edit) { return const_cast<char*>(Of(edit).prompt_); }
  static int GetChar(EditLine* edit, wchar_t* c) { return Of(edit).NextChar(*c); }

  // A discard that came before the line is none of its business.
  void Forget() {
    uint64_t count = 0;
    while (read(wake_fd_, &count, sizeof(count)) > 0) continue;
  }

  // Returns 1 with a character, 0 at the end. A discarded line is killed, then ended.
  int NextChar(wchar_t& c) {
    if (discarding_ == 1) {
      ++discarding_;
      c = L'\n';
      return 1;
    }
    std::mbstate_t state{};
    while (true) {
      std::array<pollfd, 2> waiting = {{{STDIN_FILENO, POLLIN, 0}, {wake_fd_, POLLIN, 0}}};
      if (poll(waiting.data(), waiting.size(), -1) < 0) continue;
      if (waiting[1].revents != 0) {
        Forget();
        ++discarding_;
        c = kKillLine;
        return 1;
      }
      char byte = 0;
      if (read(STDIN_FILENO, &byte, 1) != 1) return 0;
      const size_t n_used = std::mbrtowc(&c, &byte, 1, &state);
      if (n_used == static_cast<size_t>(-2)) continue;    // more bytes follow
      if (n_used == static_cast<size_t>(-1)) state = {};  // no UTF-8
      if (n_used <= 1) return 1;
    }
  }

  int wake_fd_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  const char* prompt_ = "";
  int discarding_ = 0;  // characters of a discard handed out
};

LineReader::LineReader(Interrupts& interrupts) : interrupts_(interrupts) {
  if (isatty(STDIN_FILENO) != 1) return;
  editor_ = std::make_unique<Editor>();
  interrupts_.WhenIdle([this] { editor_->Discard(); });
}

LineReader::~LineReader() {
  if (editor_) interrupts_.WhenIdle({});
}

std::optional<std::string> LineReader::ReadLine(const char* prompt, bool& is_discarded) {
  if (editor_) return editor_->ReadLine(prompt, is_discarded);
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

std::optional<std::string> LineReader::Read() {
  std::string message;
  bool is_first = true;
  while (true) {
    bool is_discarded = false;
    auto line = ReadLine(is_first ? "> " : "  ", is_discarded);
    if (!line) return is_first ? std::nullopt : std::optional<std::string>(std::move(message));
    if (is_discarded) {
      message.clear();
      is_first = true;
      continue;
    }
    const bool goes_on = line->ends_with('\\');
    if (goes_on) line->pop_back();
    message += *line;
    if (!goes_on) return message;
    message += '\n';
    is_first = false;
  }
}

}  // namespace vericache::apps
