#include "engine/channel.h"

#include <iterator>
#include <utility>

namespace vericache::engine {
namespace {

// Adds a later event of the same kind to an earlier one.
void Join(Event& earlier, Event later) {
  if (earlier.kind == Event::Kind::kPrefill) {
    earlier = std::move(later);
    return;
  }
  earlier.tokens.insert(earlier.tokens.end(), later.tokens.begin(), later.tokens.end());
  earlier.text += later.text;
  std::move(later.logprobs.begin(), later.logprobs.end(), std::back_inserter(earlier.logprobs));
  earlier.stats = later.stats;
}

}  // namespace

void Channel::Push(Event event) {
  const std::lock_guard lock(mutex_);
  if (!events_.empty() && events_.back().kind == event.kind) {
    Join(events_.back(), std::move(event));
  } else {
    events_.push_back(std::move(event));
  }
  has_event_.notify_one();
}

bool Channel::Pop(Event& event) {
  std::unique_lock lock(mutex_);
  if (is_drained_) return false;
  has_event_.wait(lock, [&] { return !events_.empty(); });
  event = std::move(events_.front());
  events_.pop_front();
  is_drained_ = event.kind == Event::Kind::kFinished;
  return true;
}

}  // namespace vericache::engine
