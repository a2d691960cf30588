// Where the time of a forward pass goes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vericache::model {

enum class PassPart : uint8_t {
  kEmbed,
  kNorm,             // RMSNorm and quantisation, both per layer and the last
  kQkv,              // the three projections
  kRope,             // bias, rotation, K and V to the KV
  kAttention,        // scores, softmax, weighted values
  kMerge,            // partials merged, quantisation
  kAttentionOutput,  // the projection back, residual
  kGateUp,           // the two projections
  kGate,             // SiLU, product, quantisation
  kDown,             // the projection back, residual
  kLogits,
  kWait,  // at barriers
};
inline constexpr size_t kPassPartCount = 12;
inline constexpr std::array<std::string_view, kPassPartCount> kPassPartNames = {
    "embed",   "norm", "qkv",  "rope+append", "attention", "merge", "attention output",
    "gate/up", "gate", "down", "logits",      "wait"};

struct PassTimes {
  std::array<double, kPassPartCount> seconds{};
};

// One thread's stopwatch: Lap gives the time since the last one to a part.
class PartClock {
 public:
  void Start(bool is_running) {
    is_running_ = is_running;
    if (!is_running_) return;
    times_ = {};
    last_ = std::chrono::steady_clock::now();
  }
  void Lap(PassPart part) {
    if (!is_running_) return;
    const auto now = std::chrono::steady_clock::now();
    times_.seconds[static_cast<size_t>(part)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  const PassTimes& Times() const { return times_; }

 private:
  bool is_running_ = false;
  std::chrono::steady_clock::time_point last_;
  PassTimes times_;
};

}  // namespace vericache::model
