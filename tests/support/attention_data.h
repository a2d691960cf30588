// One chunk of attention input, built from seeded floats: queries, runs of encoded slots, and
// padding full of garbage. What the kernel tests and benchmarks of attention share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/kernels.h"
#include "kernels/kv_layout.h"
#include "kernels/kv_pack.h"

namespace vericache::testing_support {

struct ChunkShape {
  kernels::KvFormat format = kernels::KvFormat::kI16;
  int head_dim = 64;
  int group = 3;  // query heads per KV head
  int n_rows = 1;
  std::vector<int> run_slots;  // slots of each run
  bool has_log_weights = false;
  uint32_t seed = 1;
};

// Owns everything an AttentionTask of the shape points at, except queries and scratch, which each
// path lays out its own way.
class ChunkData {
 public:
  explicit ChunkData(const ChunkShape& shape) : shape_(shape), rng_(shape.seed) {
    const auto head_dim = static_cast<size_t>(shape.head_dim);
    std::normal_distribution<float> normal;
    const int n_tokens = (shape.n_rows + shape.group - 1) / shape.group;
    q_.resize(static_cast<size_t>(n_tokens * shape.group) * head_dim);
    for (float& x : q_) x = normal(rng_);
    // A few loud key channels and a common direction, as real keys have.
    std::vector<float> channel_gain(head_dim, 1.0f);
    std::vector<float> channel_mean(head_dim, 0.0f);
    for (size_t d = 3; d < head_dim; d += 13) channel_gain[d] = 4.0f;
    for (size_t d = 1; d < head_dim; d += 7) channel_mean[d] = 3.0f * normal(rng_);
    for (const int n_slots : shape.run_slots) {
      Run& run = runs_.emplace_back();
      run.n_slots = n_slots;
      const auto count = static_cast<size_t>(n_slots) * head_dim;
      run.keys_f32.resize(count);
      run.values_f32.resize(count);
      for (size_t i = 0; i < count; ++i) {
        run.keys_f32[i] = normal(rng_) * channel_gain[i % head_dim] + channel_mean[i % head_dim];
        run.values_f32[i] = normal(rng_);
      }
      if (shape.has_log_weights) {
        std::uniform_int_distribution<int> degree(1, 40);
        for (int j = 0; j < n_slots; ++j) {
          run.log_weights_f32.push_back(std::log2(static_cast<float>(degree(rng_))));
        }
      }
    }
    n_visible_.assign(static_cast<size_t>(shape.n_rows), SlotCount());
    Encode();
  }

  int SlotCount() const {
    int n_slots = 0;
    for (const int n : shape_.run_slots) n_slots += n;
    return n_slots;
  }

  // Every row sees [0, n_visible(row)).
  template <typename Fn>
  void SetVisible(Fn n_visible) {
    for (int row = 0; row < shape_.n_rows; ++row) {
      n_visible_[static_cast<size_t>(row)] = n_visible(row);
    }
  }

  const ChunkShape& shape() const { return shape_; }
  int n_visible(int row) const { return n_visible_[static_cast<size_t>(row)]; }
  const float* query(int row) const {
    return q_.data() + static_cast<size_t>(row) * static_cast<size_t>(shape_.head_dim);
  }
  float* mutable_query(int row) {
    return q_.data() + static_cast<size_t>(row) * static_cast<size_t>(shape_.head_dim);
  }
  // The unencoded floats of a chunk slot.
  const float* key(int slot) const { return Vector(slot, &Run::keys_f32); }
  const float* value(int slot) const { return Vector(slot, &Run::values_f32); }
  float* mutable_key(int slot) { return const_cast<float*>(key(slot)); }
  float* mutable_value(int slot) { return const_cast<float*>(value(slot)); }
  float log_weight(int slot) const {
    if (!shape_.has_log_weights) return 0.0f;
    const Run* run = runs_.data();
    while (slot >= run->n_slots) slot -= (run++)->n_slots;
    return run->log_weights_f32[static_cast<size_t>(slot)];
  }

  kernels::QueryRows Rows(int first_row, int n_rows) const {
    return {
        .q = q_.data(),
        .token_stride = static_cast<size_t>(shape_.group) * static_cast<size_t>(shape_.head_dim),
        .group = shape_.group,
        .first_row = first_row,
        .n_rows = n_rows,
        .head_dim = shape_.head_dim};
  }
  const int32_t* visible_data() const { return n_visible_.data(); }
  const std::vector<kernels::SlotRun>& slot_runs() const { return slot_runs_; }

  // Replaces the floats by what the packed slots stand for; the codes stay as they are.
  void ReplaceByUnpacked() {
    for (size_t i = 0; i < runs_.size(); ++i) {
      for (int slot = 0; slot < runs_[i].n_slots; ++slot) {
        const size_t offset = static_cast<size_t>(slot) * static_cast<size_t>(shape_.head_dim);
        kernels::UnpackKey(shape_.format, shape_.head_dim, slot_runs_[i], slot,
                           runs_[i].keys_f32.data() + offset);
        kernels::UnpackValue(shape_.format, shape_.head_dim, slot_runs_[i], slot,
                             runs_[i].values_f32.data() + offset);
      }
    }
  }

  // Encodes the floats anew, with fresh garbage behind the last slot.
  void Encode();

 private:
  struct Run {
    int n_slots = 0;
    std::vector<float> keys_f32, values_f32, log_weights_f32;
    AlignedBuffer keys, values, key_scales, value_scales, log_weights;
  };

  const float* Vector(int slot, std::vector<float> Run::*member) const {
    const Run* run = runs_.data();
    while (slot >= run->n_slots) slot -= (run++)->n_slots;
    return (run->*member).data() + static_cast<size_t>(slot) * static_cast<size_t>(shape_.head_dim);
  }

  void FillGarbage(AlignedBuffer& buffer) {
    const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::infinity(), -1e30f, 3e38f};
    auto* words = buffer.As<uint32_t>();
    for (size_t i = 0; i < buffer.size() / 4; ++i) {
      words[i] = static_cast<uint32_t>(rng_());
      if (i % 3 == 0) std::memcpy(&words[i], &odd[rng_() % 4], 4);
    }
  }

  void EncodeI16(Run& run);
  void EncodePacked(Run& run);

  ChunkShape shape_;
  std::mt19937 rng_;
  std::vector<float> q_;
  std::vector<Run> runs_;
  std::vector<int32_t> n_visible_;
  std::vector<kernels::SlotRun> slot_runs_;
};

inline void ChunkData::EncodeI16(Run& run) {
  const int head_dim = shape_.head_dim;
  const kernels::KernelTable& ref = kernels::RefKernels();
  std::vector<int16_t> codes(static_cast<size_t>(head_dim));
  auto* keys = run.keys.As<int16_t>();
  auto* values = run.values.As<int16_t>();
  for (int j = 0; j < run.n_slots; ++j) {
    const size_t offset = static_cast<size_t>(j) * static_cast<size_t>(head_dim);
    bool is_finite = true;
    run.key_scales.As<float>()[j] =
        ref.encode_key(run.keys_f32.data() + offset, head_dim, codes.data(), &is_finite);
    for (int d = 0; d < head_dim; ++d) {
      keys[kernels::KeyIndex(head_dim, j, d)] = codes[static_cast<size_t>(d)];
    }
    run.value_scales.As<float>()[j] =
        ref.encode_value(run.values_f32.data() + offset, head_dim, codes.data(), &is_finite);
    for (int d = 0; d < head_dim; ++d) {
      values[kernels::ValueIndex(head_dim, j, d)] = codes[static_cast<size_t>(d)];
    }
  }
}

inline void ChunkData::EncodePacked(Run& run) {
  const int head_dim = shape_.head_dim;
  for (int first = 0; first < run.n_slots; first += 64) {
    const kernels::SlotGroup group{.format = shape_.format,
                                   .head_dim = head_dim,
                                   .n_valid = std::min(64, run.n_slots - first)};
    const size_t bytes = kernels::KeyBytes(shape_.format, head_dim, first);
    const auto offset = static_cast<size_t>(first) * static_cast<size_t>(head_dim);
    float* value_scales =
        run.value_scales.As<float>() + kernels::ValueScaleCount(shape_.format, first);
    kernels::PackKeyGroup(
        group, run.keys_f32.data() + offset, run.keys.data() + bytes,
        run.key_scales.As<float>() + kernels::KeyScaleCount(shape_.format, head_dim, first));
    kernels::PackValueGroup(group, run.values_f32.data() + offset, run.values.data() + bytes,
                            value_scales);
    // Garbage where no valid slot is, though packing leaves zeros there.
    for (int slot = group.n_valid; slot < 64; ++slot) {
      value_scales[kernels::ValueScaleIndex(slot)] = std::numeric_limits<float>::quiet_NaN();
      value_scales[kernels::ValueMidIndex(slot)] = std::numeric_limits<float>::infinity();
      for (int d = 0; d < head_dim; ++d) {
        const auto key = kernels::KeyPlace(shape_.format, head_dim, slot, d);
        const auto value = kernels::ValuePlace(shape_.format, head_dim, slot, d);
        run.keys.data()[bytes + key.byte] ^= static_cast<std::byte>((rng_() & 3) << key.shift);
        run.values.data()[bytes + value.byte] ^=
            static_cast<std::byte>((rng_() & 3) << value.shift);
      }
    }
  }
}

inline void ChunkData::Encode() {
  slot_runs_.clear();
  for (Run& run : runs_) {
    const int padded = (run.n_slots + 63) / 64 * 64;
    run.keys = AlignedBuffer(kernels::KeyBytes(shape_.format, shape_.head_dim, padded));
    run.values = AlignedBuffer(kernels::ValueBytes(shape_.format, shape_.head_dim, padded));
    run.key_scales = AlignedBuffer(sizeof(float) *
                                   kernels::KeyScaleCount(shape_.format, shape_.head_dim, padded));
    run.value_scales =
        AlignedBuffer(sizeof(float) * kernels::ValueScaleCount(shape_.format, padded));
    run.log_weights = AlignedBuffer(sizeof(float) * static_cast<size_t>(padded));
    for (AlignedBuffer* buffer :
         {&run.keys, &run.values, &run.key_scales, &run.value_scales, &run.log_weights}) {
      FillGarbage(*buffer);
    }
    if (shape_.format == kernels::KvFormat::kI16) {
      EncodeI16(run);
    } else {
      EncodePacked(run);
    }
    std::ranges::copy(run.log_weights_f32, run.log_weights.As<float>());
    slot_runs_.push_back(
        {.keys = run.keys.data(),
         .values = run.values.data(),
         .key_scales = run.key_scales.As<float>(),
         .value_scales = run.value_scales.As<float>(),
         .log_weights = shape_.has_log_weights ? run.log_weights.As<float>() : nullptr,
         .n_slots = run.n_slots});
  }
}

// What one path makes of the rows [first_row, first_row + n_rows) of a chunk.
struct ChunkResult {
  std::vector<float> max, sum, out, scores;
};

inline ChunkResult RunChunk(const kernels::KernelTable& path, const ChunkData& data, int first_row,
                            int n_rows) {
  const ChunkShape& shape = data.shape();
  const kernels::AttentionKernels& attention = path.attention[static_cast<size_t>(shape.format)];
  AlignedBuffer queries(attention.query_bytes(n_rows, shape.head_dim) + 1);
  AlignedBuffer scratch(attention.scratch_bytes(n_rows, shape.head_dim) + 1);
  std::memset(scratch.data(), 0xff, scratch.size());  // NaN: scratch arrives dirty
  attention.pack_queries(data.Rows(first_row, n_rows), queries.data());

  const auto rows = static_cast<size_t>(n_rows);
  ChunkResult result;
  result.max.assign(rows, NAN);
  result.sum.assign(rows, NAN);
  result.out.assign(rows * static_cast<size_t>(shape.head_dim), NAN);
  result.scores.assign(rows * kernels::kChunkSlots, 0.0f);
  kernels::AttentionTask task{.head_dim = shape.head_dim,
                              .n_rows = n_rows,
                              .queries = queries.data(),
                              .runs = data.slot_runs(),
                              .n_visible = data.visible_data() + first_row,
                              .prefetch = nullptr,
                              .scratch = scratch.data(),
                              .max = result.max.data(),
                              .sum = result.sum.data(),
                              .out = result.out.data()};
  attention.chunk(task);
  std::memset(scratch.data(), 0xff, scratch.size());
  attention.scores(task, result.scores.data());
  return result;
}

}  // namespace vericache::testing_support
