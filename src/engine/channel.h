// Events from the engine's loop to the reader of one stream. Bounded: events that a slow reader has
// not taken yet are joined, so there is at most one of each kind, and the loop never waits.
// Threads: all members may be called from any thread; one reader.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "engine/engine.h"

namespace vericache::engine {

class Channel {
 public:
  // kFinished is the last event.
  void Push(Event event);
  // Blocks until there is an event; false once kFinished was taken.
  bool Pop(Event& event);

  // The reader wants no more; the loop looks here every iteration.
  void Cancel() { is_cancelled_ = true; }
  bool IsCancelled() const { return is_cancelled_; }

 private:
  std::mutex mutex_;
  std::condition_variable has_event_;
  std::deque<Event> events_;
  bool is_drained_ = false;
  std::atomic<bool> is_cancelled_{false};
};

}  // namespace vericache::engine
