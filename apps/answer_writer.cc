#include "apps/answer_writer.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "apps/output_file.h"

namespace vericache::apps {
namespace {

constexpr auto kTick = std::chrono::milliseconds(15);  // finer than a reader sees

int64_t NowUs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

AnswerWriter::AnswerWriter(int fd, Pacing pacing) : fd_(fd), pacing_(pacing) {
  if (pacing_ == Pacing::kEven) thread_ = std::thread([this] { Pace(); });
}

AnswerWriter::~AnswerWriter() { Finish(); }

void AnswerWriter::Write(std::string_view text, int n_tokens) {
  const std::lock_guard lock(mutex_);
  if (pacing_ == Pacing::kAtOnce) return WriteNow(text);
  pacer_.Add(text, n_tokens, NowUs());
  changed_.notify_one();
}

void AnswerWriter::Finish() {
  {
    const std::lock_guard lock(mutex_);
    is_finishing_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  WriteNow(pacer_.TakeAll());
  if (last_byte_ != '\n') WriteNow("\n");
}

bool AnswerWriter::HasFailed() const {
  const std::lock_guard lock(mutex_);
  return error_ != 0;
}

Status AnswerWriter::GetStatus() const {
  const std::lock_guard lock(mutex_);
  if (error_ == 0) return {};
  return tl::unexpected(WriteError(kStandardOutput, error_));
}

void AnswerWriter::Pace() {
  std::unique_lock lock(mutex_);
  while (!is_finishing_) {
    if (pacer_.IsEmpty()) {
      changed_.wait(lock);
    } else {
      WriteNow(pacer_.Take(NowUs()));
      changed_.wait_for(lock, kTick);
    }
  }
}

void AnswerWriter::WriteNow(std::string_view text) {
  while (!text.empty() && error_ == 0) {
    const ssize_t n_written = write(fd_, text.data(), text.size());
    if (n_written < 0 && errno == EINTR) continue;
    if (n_written < 0) {
      error_ = errno;
      return;
    }
    last_byte_ = text[static_cast<size_t>(n_written) - 1];
    text.remove_prefix(static_cast<size_t>(n_written));
  }
}

}  // namespace vericache::apps
