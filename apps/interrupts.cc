#include "apps/interrupts.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include "apps/commands.h"
#include "base/check.h"

namespace vericache::apps {
namespace {

sigset_t InterruptSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t set = InterruptSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  VC_CHECK(signal_fd_ >= 0 && stop_fd_ >= 0, "errno {}", errno);
  thread_ = std::thread([this] { Watch(); });
}

Interrupts::~Interrupts() {
  const uint64_t one = 1;
  VC_CHECK(write(stop_fd_, &one, sizeof(one)) == sizeof(one), "errno {}", errno);
  thread_.join();
  close(signal_fd_);
  close(stop_fd_);
  const sigset_t set = InterruptSet();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Interrupts::OnInterrupt(std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  action_ = std::move(action);
  if (was_interrupted_ && action_) action_();
}

void Interrupts::WhenIdle(std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  idle_ = std::move(action);
}

void Interrupts::Watch() {
  while (true) {
    std::array<pollfd, 2> waiting = {{{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    if (poll(waiting.data(), waiting.size(), -1) < 0)
      continue;  // interrupted by a debugger or the like
    if (waiting[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) Act();
  }
}

void Interrupts::Act() {
  const std::lock_guard lock(mutex_);
  if (idle_) return action_ ? action_() : idle_();
  const bool is_second = was_interrupted_.exchange(true);
  if (is_second || !action_)
    _exit(kExitInterrupted);  // buffers of other threads are theirs: nothing is flushed
  action_();
}

}  // namespace vericache::apps
