// A KV of given segments, each head's slots in one run with garbage behind them: what attention's
// tests attend to. The last segment takes the rows of a pass.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/kernels.h"
#include "kernels/kv_layout.h"
#include "kv/segment.h"

namespace vericache::testing_support {

class SegmentedKv final : public kv::CausalKv {
 public:
  // Slots of each segment; room for n_new_rows more in the last one.
  SegmentedKv(const kv::KvShape& shape, std::vector<int> n_slots, int n_new_rows)
      : shape_(shape), n_slots_(std::move(n_slots)) {
    std::mt19937 random(5);
    for (int i = 0; i < shape.HeadCount(); ++i) {
      std::vector<Run>& head = heads_.emplace_back();
      for (size_t s = 0; s < n_slots_.size(); ++s) {
        const int n = n_slots_[s] + (s + 1 == n_slots_.size() ? n_new_rows : 0);
        head.push_back(MakeRun((n + 63) / 64 * 64, random));
      }
    }
  }

  // A multiple of 64 slots of a segment in a run of its own, so that chunks meet several runs.
  void SplitRuns(int segment, int n_slots_per_run) {
    for (std::vector<Run>& head : heads_) {
      std::vector<kernels::SlotRun>& runs = head[static_cast<size_t>(segment)].runs;
      const kernels::SlotRun whole = runs.front();
      runs.clear();
      const auto head_dim = static_cast<size_t>(shape_.head_dim);
      for (int begin = 0; begin < whole.n_slots; begin += n_slots_per_run) {
        const auto first = static_cast<size_t>(begin);
        runs.push_back(
            {.keys = whole.keys + first * head_dim * sizeof(int16_t),
             .values = whole.values + first * head_dim * sizeof(int16_t),
             .key_scales = whole.key_scales + first,
             .value_scales = whole.value_scales + first,
             .log_weights = whole.log_weights == nullptr ? nullptr : whole.log_weights + first,
             .n_slots = std::min(n_slots_per_run, whole.n_slots - begin)});
      }
    }
  }

  // Where a slot of any segment is stored, and its log weight.
  kv::RowSlot SlotAt(int layer, int head, int segment, int slot) {
    Run& run = RunOf(layer, head, segment);
    return {.keys = run.keys.As<int16_t>(),
            .values = run.values.As<int16_t>(),
            .key_steps = run.key_steps.As<float>(),
            .value_steps = run.value_steps.As<float>(),
            .slot = slot};
  }
  void SetLogWeight(int layer, int head, int segment, int slot, float log_weight) {
    Run& run = RunOf(layer, head, segment);
    run.log_weights.As<float>()[slot] = log_weight;
    run.runs.front().log_weights = run.log_weights.As<float>();
  }

  // Says that the slots of the first segment are stored rotated.
  void SetFirstRotated() { is_first_rotated_ = true; }

  const kv::KvShape& Shape() const override { return shape_; }
  void Segments(int layer, int head, std::vector<kv::Segment>& out) const override {
    const std::vector<Run>& runs = heads_[shape_.HeadIndex(layer, head)];
    for (size_t s = 0; s < runs.size(); ++s) {
      out.push_back({.n_slots = n_slots_[s],
                     .runs = runs[s].runs,
                     .is_rotated = is_first_rotated_ && s == 0,
                     .is_causal = s + 1 == runs.size()});
    }
  }
  int TokenCount() const override {
    int n = 0;
    for (const int n_slots : n_slots_) n += n_slots;
    return n;
  }
  kv::RowSlot NewRow(int layer, int head, int row_idx) override {
    const int last = static_cast<int>(n_slots_.size()) - 1;
    return SlotAt(layer, head, last, n_slots_.back() + row_idx);
  }

 private:
  struct Run {
    AlignedBuffer keys, values, key_steps, value_steps, log_weights;
    std::vector<kernels::SlotRun> runs;
  };

  Run& RunOf(int layer, int head, int segment) {
    return heads_[shape_.HeadIndex(layer, head)][static_cast<size_t>(segment)];
  }

  Run MakeRun(int capacity, std::mt19937& random) {
    Run run;
    const size_t n_codes = static_cast<size_t>(capacity) * static_cast<size_t>(shape_.head_dim);
    run.keys = AlignedBuffer(n_codes * sizeof(int16_t));
    run.values = AlignedBuffer(n_codes * sizeof(int16_t));
    run.key_steps = AlignedBuffer(static_cast<size_t>(capacity) * sizeof(float));
    run.value_steps = AlignedBuffer(static_cast<size_t>(capacity) * sizeof(float));
    run.log_weights = AlignedBuffer(static_cast<size_t>(capacity) * sizeof(float));
    for (AlignedBuffer* buffer : {&run.keys, &run.values, &run.key_steps, &run.value_steps}) {
      auto* words = buffer->As<uint32_t>();
      for (size_t i = 0; i < buffer->size() / 4; ++i) words[i] = static_cast<uint32_t>(random());
    }
    run.runs.push_back({.keys = run.keys.data(),
                        .values = run.values.data(),
                        .key_scales = run.key_steps.As<float>(),
                        .value_scales = run.value_steps.As<float>(),
                        .n_slots = capacity});
    return run;
  }

  kv::KvShape shape_;
  std::vector<int> n_slots_;
  bool is_first_rotated_ = false;
  std::vector<std::vector<Run>> heads_;  // [layer * n_kv_heads + head][segment]
};

}  // namespace vericache::testing_support
