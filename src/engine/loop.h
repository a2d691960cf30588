// The engine's loop: admits requests, runs one pass per iteration over all live sessions,
// compresses between passes, delivers what was committed.
//
//   waiting ──admit (blocks reserved, all or nothing; first come, first served)──► live ──►
//   finished
//
// Threads: Add and Stop may be called from any thread; everything else happens on the loop's own
// thread, which is also member 0 of the team.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/thread_team.h"
#include "decode/session.h"
#include "engine/channel.h"
#include "engine/row_plan.h"
#include "kv/block_pool.h"
#include "model/forward.h"

namespace vericache::engine {

using Clock = std::chrono::steady_clock;

// A session and its reader.
struct LiveRequest {
  std::unique_ptr<decode::Session> session;
  std::shared_ptr<Channel> channel;
  int64_t last_served = 0;
  int n_prefill_told = 0;
  Clock::time_point first_row{};    // when its first row ran
  Clock::time_point first_token{};  // when it was committed
  Clock::time_point last_token{};
};

struct LoopParts {
  ThreadTeam* team = nullptr;
  std::shared_ptr<kv::BlockPool> pool{};
  model::Pass* pass = nullptr;
  RowBudget budget;
  int max_sessions = 0;
  int max_waiting = 0;
};

class Loop {
 public:
  explicit Loop(LoopParts parts);
  ~Loop();  // ends every request with kCancelled

  // Errors: kResourceExhausted if too many wait.
  Status Add(LiveRequest request);

  // A share of the pool, for whoever takes blocks outside the loop: taken before the blocks and
  // given back after them. While one is out, an idle loop does not take live blocks for lost.
  std::shared_ptr<kv::BlockPool> SharePool();

 private:
  void Run();
  // Waits for work if there is none; false when stopping.
  bool TakeArrivals();
  void DropCancelled();
  void Admit();
  Status ReserveWithoutPrefixes();
  void RunPass();
  void Compress();
  void Deliver();
  void DeliverTo(LiveRequest& request, Clock::time_point now);
  void CancelAll();

  LoopParts parts_;
  long n_pool_owners_;               // of the pool, while no answer is kept
  std::deque<LiveRequest> waiting_;  // in order of arrival
  std::vector<LiveRequest> live_;    // in order of admission
  int64_t n_passes_ = 0;

  std::mutex mutex_;
  std::condition_variable has_news_;
  std::deque<LiveRequest> arrivals_;
  int n_waiting_ = 0;  // arrivals and waiting
  bool is_stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace vericache::engine
