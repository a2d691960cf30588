// Ctrl-C: the first one ends the answer, so that what is known can be printed; a second one ends
// the process.
//
// While an object lives, SIGINT is taken by a thread of its own instead of a handler, so that
// cancelling may lock and allocate. Threads started later inherit the blocked signal: make it
// before the engine. Threads: OnInterrupt and WasInterrupted from any thread; one object at a time.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace vericache::apps {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool WasInterrupted() const { return was_interrupted_.load(); }
  // What the first Ctrl-C does while something runs; called at once if it came already. With an
  // empty function, Ctrl-C ends the process there and then, with the exit code of an interrupted
  // one.
  void OnInterrupt(std::function<void()> action);
  // What Ctrl-C does while nothing runs, in place of ending the process. As long as it is given, no
  // Ctrl-C ends the process, and WasInterrupted() says nothing: a chat goes on.
  void WhenIdle(std::function<void()> action);

 private:
  void Watch();
  void Act();

  std::atomic<bool> was_interrupted_{false};
  std::mutex mutex_;
  std::function<void()> action_;
  std::function<void()> idle_;
  int signal_fd_ = -1;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace vericache::apps
