// Goal: all text arrives, in order and with its line ended, paced or not; a reader that went
// away is noticed.
// Method: pipes.
#include "apps/answer_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace vericache::apps {
namespace {

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~Pipe() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  int WriteEnd() const { return ends_[1]; }
  void CloseReadEnd() {
    close(ends_[0]);
    ends_[0] = -1;
  }
  std::string ReadAll() {
    close(ends_[1]);
    ends_[1] = -1;
    std::string text;
    std::array<char, 256> bytes;
    for (ssize_t n = 0; (n = read(ends_[0], bytes.data(), bytes.size())) > 0;) {
      text.append(bytes.data(), static_cast<size_t>(n));
    }
    return text;
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

TEST(AnswerWriter, WritesEverythingInOrderAtOnceOrPaced) {
  for (const auto pacing : {AnswerWriter::Pacing::kAtOnce, AnswerWriter::Pacing::kEven}) {
    Pipe pipe;
    AnswerWriter writer(pipe.WriteEnd(), pacing);
    std::string expected;
    for (int i = 0; i < 50; ++i) {
      const std::string text = "piece " + std::to_string(i) + ", ";
      writer.Write(text, 4);
      expected += text;
    }
    writer.Finish();
    EXPECT_FALSE(writer.HasFailed());
    EXPECT_EQ(pipe.ReadAll(), expected + "\n");
  }
}

TEST(AnswerWriter, EndsTheLineOnlyIfTheTextDidNot) {
  Pipe pipe;
  AnswerWriter writer(pipe.WriteEnd(), AnswerWriter::Pacing::kAtOnce);
  writer.Write("done\n", 1);
  writer.Finish();
  EXPECT_EQ(pipe.ReadAll(), "done\n");
}

TEST(AnswerWriter, WritesNothingForNoText) {
  Pipe pipe;
  AnswerWriter writer(pipe.WriteEnd(), AnswerWriter::Pacing::kEven);
  writer.Finish();
  EXPECT_EQ(pipe.ReadAll(), "");
}

TEST(AnswerWriter, NoticesThatTheReaderWentAway) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.CloseReadEnd();
  AnswerWriter writer(pipe.WriteEnd(), AnswerWriter::Pacing::kAtOnce);
  EXPECT_FALSE(writer.HasFailed());
  writer.Write("nobody", 1);
  EXPECT_TRUE(writer.HasFailed());
  writer.Finish();
}

}  // namespace
}  // namespace vericache::apps
