// A team of threads that runs one function together, with barriers inside: the shape of a forward
// pass.
//
// The caller is member 0. Members spin briefly, then sleep in the kernel: on a busy or small
// machine a spinning barrier costs milliseconds. Which member does which item never changes a bit
// of a result (I3). Threads: Run is called by one thread at a time; Member is valid only inside
// Run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace vericache {

class ThreadTeam;

// One thread's view of the team while a function runs.
class Member {
 public:
  int Index() const { return index_; }
  int Size() const { return size_; }
  // All members arrive before any leaves.
  void Barrier();
  // This member's share [begin, end) of n items, in units of `grain`.
  struct Range {
    int begin;
    int end;
  };
  Range Share(int n_items, int grain = 1) const;

 private:
  friend class ThreadTeam;
  Member(ThreadTeam* team, int index, int size) : team_(team), index_(index), size_(size) {}
  ThreadTeam* team_;
  int index_;
  int size_;
};

class ThreadTeam {
 public:
  explicit ThreadTeam(int n_threads);  // n_threads >= 1
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int Size() const { return n_threads_; }
  // Calls task(member) once on every member and returns when all have returned.
  void Run(const std::function<void(Member&)>& task);

 private:
  friend class Member;
  // A word that opens: Wait returns once the word differs from `seen`.
  struct alignas(64) Gate {
    std::atomic<int32_t> word{0};
    std::atomic<int32_t> n_sleepers{0};
    void Wait(int32_t seen);
    void Open();
  };
  void Work(int index);
  void Arrive();

  int n_threads_;
  Gate start_;
  Gate phase_;
  alignas(64) std::atomic<int32_t> n_arrived_{0};
  const std::function<void(Member&)>* task_ = nullptr;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

// Items [0, n) handed out one by one or in runs to whoever asks; for work of uneven cost. Reset by
// one member between barriers.
class WorkQueue {
 public:
  void Reset(int n_items) {
    n_items_ = n_items;
    next_.store(0, std::memory_order_relaxed);
  }
  // The first of the next `run` items, or -1 when none is left. The caller clips [first, first +
  // run) to n.
  int Next(int run = 1) {
    const int first = next_.fetch_add(run, std::memory_order_relaxed);
    return first < n_items_ ? first : -1;
  }
  int Size() const { return n_items_; }

 private:
  int n_items_ = 0;
  alignas(64) std::atomic<int> next_{0};
};

}  // namespace vericache
