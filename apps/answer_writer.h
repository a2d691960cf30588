// Writes the answer to standard output as it comes: on a terminal evenly (burst_pacer.h), elsewhere
// at once.
//
// Threads: Write and Finish from one thread; pacing runs in a thread of its own.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "apps/burst_pacer.h"
#include "base/result.h"

namespace vericache::apps {

class AnswerWriter {
 public:
  enum class Pacing : uint8_t { kAtOnce, kEven };

  AnswerWriter(int fd, Pacing pacing);
  ~AnswerWriter();
  AnswerWriter(const AnswerWriter&) = delete;
  AnswerWriter& operator=(const AnswerWriter&) = delete;

  // Text of n_tokens accepted tokens.
  void Write(std::string_view text, int n_tokens);
  // Writes all that is left; ends the line if the text did not.
  void Finish();
  // The reader went away or the disk is full: nothing more will be written.
  bool HasFailed() const;
  // Errors: those of WriteError.
  Status GetStatus() const;

 private:
  void Pace();
  void WriteNow(std::string_view text);

  int fd_;
  Pacing pacing_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  BurstPacer pacer_;
  bool is_finishing_ = false;
  int error_ = 0;  // errno of the write that failed
  char last_byte_ = '\n';
  std::thread thread_;
};

}  // namespace vericache::apps
