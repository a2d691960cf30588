#include "engine/loop.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace vericache::engine {
namespace {

using decode::Session;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

bool IsSet(Clock::time_point time) { return time != Clock::time_point{}; }

}  // namespace

Loop::Loop(LoopParts parts)
    : parts_(std::move(parts)),
      n_pool_owners_(parts_.pool.use_count()),
      thread_([this] { Run(); }) {}

Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    has_news_.notify_one();
  }
  thread_.join();
}

Status Loop::Add(LiveRequest request) {
  const std::lock_guard lock(mutex_);
  if (n_waiting_ >= parts_.max_waiting) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "{} requests are waiting, which is the limit; try again later", n_waiting_);
  }
  ++n_waiting_;
  arrivals_.push_back(std::move(request));
  has_news_.notify_one();
  return {};
}

std::shared_ptr<kv::BlockPool> Loop::SharePool() {
  const std::lock_guard lock(mutex_);
  return parts_.pool;
}

void Loop::Run() {
  while (TakeArrivals()) {
    DropCancelled();
    Admit();
    RunPass();
    Deliver();  // before a compression: nobody waits for one to read a token that is there
    Compress();
  }
  CancelAll();
}

bool Loop::TakeArrivals() {
  std::unique_lock lock(mutex_);
  if (live_.empty() && waiting_.empty() && arrivals_.empty() && !is_stopping_) {
    parts_.pool->CheckIntegrity();  // an audit while idle
    // Whoever holds blocks that are no session's of ours owns the pool too (SharePool): a new owner
    // comes from a lock that we hold, or from an owner that we count.
    const bool is_kept = parts_.pool.use_count() > n_pool_owners_;
    VC_CHECK(is_kept || parts_.pool->LiveCount() == 0, "{} blocks held by nobody",
             parts_.pool->LiveCount());
    has_news_.wait(lock, [&] { return is_stopping_ || !arrivals_.empty(); });
  }
  std::move(arrivals_.begin(), arrivals_.end(), std::back_inserter(waiting_));
  arrivals_.clear();
  return !is_stopping_;
}

// A cancelled request is live for the rest of the iteration, which delivers its end.
void Loop::DropCancelled() {
  for (LiveRequest& request : live_) {
    if (request.channel->IsCancelled()) request.session->Cancel();
  }
  const auto first_cancelled = std::stable_partition(
      waiting_.begin(), waiting_.end(),
      [](const LiveRequest& request) { return !request.channel->IsCancelled(); });
  for (auto it = first_cancelled; it != waiting_.end(); ++it) {
    it->session->Cancel();
    live_.push_back(std::move(*it));
  }
  waiting_.erase(first_cancelled, waiting_.end());
}

// A request that does not fit yet holds back those behind it: none is overtaken for ever. With
// nobody left to wait for, what requests share with earlier answers is given up, and then the
// request itself.
void Loop::Admit() {
  while (!waiting_.empty() && static_cast<int>(live_.size()) < parts_.max_sessions) {
    Session& session = *waiting_.front().session;
    Status reserved = session.Reserve();
    if (!reserved && !live_.empty()) break;
    if (!reserved) reserved = ReserveWithoutPrefixes();
    if (!reserved) {
      session.Fail({reserved.error().code,
                    reserved.error().message + ", or drop KV that earlier answers keep"});
    }
    live_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  const std::lock_guard lock(mutex_);
  n_waiting_ = static_cast<int>(waiting_.size() + arrivals_.size());
}

// From the back of the queue: the front keeps its own prefix as long as it can.
Status Loop::ReserveWithoutPrefixes() {
  Status reserved;
  for (auto request = waiting_.rbegin(); request != waiting_.rend(); ++request) {
    request->session->ForgetPrefix();
    reserved = waiting_.front().session->Reserve();
    if (reserved) break;
  }
  return reserved;
}

void Loop::RunPass() {
  std::vector<RowDemand> demands;
  for (const LiveRequest& request : live_) {
    demands.push_back({.is_prefill = request.session->NextStep() == Session::Step::kPrefill,
                       .n_rows = request.session->RowCount(),
                       .last_served = request.last_served});
  }
  const std::vector<RowGrant> grants = PlanRows(demands, parts_.budget);
  if (grants.empty()) return;

  ++n_passes_;
  const Clock::time_point begin = Clock::now();
  std::vector<model::RowGroup> groups;
  size_t n_rows = 0;
  for (const RowGrant& grant : grants) {
    LiveRequest& request = live_[static_cast<size_t>(grant.session)];
    request.last_served = n_passes_;
    if (!IsSet(request.first_row)) request.first_row = begin;
    groups.push_back(request.session->Rows(grant.n_rows));
    n_rows += groups.back().tokens.size();
  }
  const auto logits = parts_.pass->Run(groups);
  const double seconds = Seconds(Clock::now() - begin);
  // Each session's share by rows: what a pass costs is shared by those who ride on it.
  for (size_t i = 0; i < grants.size(); ++i) {
    const double share = static_cast<double>(groups[i].tokens.size()) / static_cast<double>(n_rows);
    live_[static_cast<size_t>(grants[i].session)].session->Consume(logits[i], seconds * share,
                                                                   share);
  }
}

void Loop::Compress() {
  for (LiveRequest& request : live_) {
    Session& session = *request.session;
    if (session.NextStep() != Session::Step::kCompress) continue;
    const Clock::time_point begin = Clock::now();
    const compress::Job job = session.CompressionJob();
    auto body = session.GetCompressor().Compress(job, *parts_.team);
    session.ConsumeBody(std::move(body), Seconds(Clock::now() - begin));
  }
}

void Loop::Deliver() {
  const Clock::time_point now = Clock::now();
  for (LiveRequest& request : live_) DeliverTo(request, now);
  std::erase_if(live_, [](const LiveRequest& r) { return r.session->IsFinished(); });
}

void Loop::DeliverTo(LiveRequest& request, Clock::time_point now) {
  Session& session = *request.session;
  if (session.PrefilledCount() > request.n_prefill_told) {
    request.n_prefill_told = session.PrefilledCount();
    request.channel->Push({.kind = Event::Kind::kPrefill, .prefilled = request.n_prefill_told});
  }
  decode::Output output = session.TakeOutput();
  if (!output.tokens.empty()) {
    if (!IsSet(request.first_token)) request.first_token = now;
    request.last_token = now;
  }
  decode::Stats stats = session.GetStats();
  const Clock::time_point prefill_end = IsSet(request.first_token) ? request.first_token : now;
  if (IsSet(request.first_row)) stats.prefill_s = Seconds(prefill_end - request.first_row);
  if (IsSet(request.first_token)) {
    stats.decode_s = Seconds(request.last_token - request.first_token);
  }
  if (!output.tokens.empty() || !output.text.empty()) {
    request.channel->Push({.kind = Event::Kind::kTokens,
                           .tokens = std::move(output.tokens),
                           .text = std::move(output.text),
                           .logprobs = std::move(output.logprobs),
                           .stats = stats});
  }
  if (session.IsFinished()) {
    std::shared_ptr<const decode::KeptKv> kept;
    if (session.GetRequest().keep_kv && session.GetFinishReason() != decode::FinishReason::kError) {
      kept = std::make_shared<const decode::KeptKv>(parts_.pool, session.Tokens(), session.Full());
    }
    request.channel->Push({.kind = Event::Kind::kFinished,
                           .reason = session.GetFinishReason(),
                           .error = session.GetError(),
                           .stats = stats,
                           .kept = std::move(kept)});
  }
}

void Loop::CancelAll() {
  std::move(waiting_.begin(), waiting_.end(), std::back_inserter(live_));
  waiting_.clear();
  for (LiveRequest& request : live_) request.session->Cancel();
  Deliver();
}

}  // namespace vericache::engine
