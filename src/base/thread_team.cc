#include "base/thread_team.h"

#include <algorithm>

#include "base/check.h"

namespace vericache {
namespace {

constexpr int kSpins =
    4000;  // about 20 us: longer than a barrier inside a layer, shorter than a time slice

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void ThreadTeam::Gate::Wait(int32_t seen) {
  for (int i = 0; i < kSpins; ++i) {
    if (word.load(std::memory_order_acquire) != seen) return;
    Pause();
  }
  n_sleepers.fetch_add(1);
  while (word.load() == seen) word.wait(seen);
  n_sleepers.fetch_sub(1);
}

void ThreadTeam::Gate::Open() {
  word.fetch_add(1);
  if (n_sleepers.load() != 0) word.notify_all();
}

void Member::Barrier() { team_->Arrive(); }

Member::Range Member::Share(int n_items, int grain) const {
  const int n_units = (n_items + grain - 1) / grain;
  const auto cut = [&](int member) {
    return std::min(n_items, static_cast<int>(int64_t{n_units} * member / size_) * grain);
  };
  return {cut(index_), cut(index_ + 1)};
}

ThreadTeam::ThreadTeam(int n_threads) : n_threads_(n_threads) {
  VC_CHECK(n_threads >= 1, "n_threads = {}", n_threads);
  for (int i = 1; i < n_threads; ++i) threads_.emplace_back([this, i] { Work(i); });
}

ThreadTeam::~ThreadTeam() {
  stopping_ = true;
  start_.Open();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::Arrive() {
  if (n_threads_ == 1) return;
  const int32_t seen = phase_.word.load(std::memory_order_relaxed);
  if (n_arrived_.fetch_add(1, std::memory_order_acq_rel) == n_threads_ - 1) {
    n_arrived_.store(0, std::memory_order_relaxed);
    phase_.Open();
  } else {
    phase_.Wait(seen);
  }
}

void ThreadTeam::Work(int index) {
  int32_t seen = 0;
  while (true) {
    start_.Wait(seen);
    ++seen;
    if (stopping_) return;
    Member member(this, index, n_threads_);
    (*task_)(member);
    Arrive();
  }
}

void ThreadTeam::Run(const std::function<void(Member&)>& task) {
  task_ = &task;
  if (n_threads_ > 1) start_.Open();
  Member member(this, 0, n_threads_);
  task(member);
  Arrive();
}

}  // namespace vericache
