// The obvious KV: vectors of rows per head. What model tests of the KV room compare with.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kv/head_view.h"
#include "kv/i16_slots.h"
#include "kv/segment.h"
#include "tests/support/property.h"
#include "tests/support/random_kv.h"

namespace vericache::testing_support {

// One token in one head.
struct ModelRow {
  std::vector<int16_t> key;
  std::vector<int16_t> value;
  float key_step = 0.0f;
  float value_step = 0.0f;
  bool operator==(const ModelRow&) const = default;
};

using ModelHead = std::vector<ModelRow>;
using KvModel = std::vector<ModelHead>;  // [layer * n_kv_heads + head]

inline ModelRow AnyRow(Rng& rng, int head_dim) {
  ModelRow row{.key = std::vector<int16_t>(static_cast<size_t>(head_dim)),
               .value = std::vector<int16_t>(static_cast<size_t>(head_dim)),
               .key_step = static_cast<float>(rng.Unit()),
               .value_step = static_cast<float>(rng.Unit())};
  for (int16_t& code : row.key) code = static_cast<int16_t>(rng.In(-32767, 32767));
  for (int16_t& code : row.value) code = static_cast<int16_t>(rng.In(-8191, 8191));
  return row;
}

// Writes row_idx of the running pass in every head, and appends it to the model's heads.
inline void WriteModelRow(Rng& rng, kv::CausalKv& kv, int row_idx, KvModel& model) {
  const kv::KvShape& shape = kv.Shape();
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    for (int head = 0; head < shape.n_kv_heads; ++head) {
      ModelRow row = AnyRow(rng, shape.head_dim);
      kv::WriteI16Slot(kv.NewRow(layer, head, row_idx), shape.head_dim,
                       {.key = row.key.data(),
                        .value = row.value.data(),
                        .key_step = row.key_step,
                        .value_step = row.value_step});
      model[shape.HeadIndex(layer, head)].push_back(std::move(row));
    }
  }
}

// The rows of one head as a reader finds them.
inline ModelHead ReadModelHead(const kv::KvSource& source, int layer, int head) {
  const kv::HeadView view(source, layer, head, Position{source.TokenCount()});
  const kv::HeadSlots slots = view.GatherAll(kernels::RefKernels());
  ModelHead rows;
  for (int slot = 0; slot < slots.Count(); ++slot) {
    const kv::I16Slot at = slots.At(slot);
    rows.push_back({.key = {at.key, at.key + slots.head_dim},
                    .value = {at.value, at.value + slots.head_dim},
                    .key_step = at.key_step,
                    .value_step = at.value_step});
  }
  return rows;
}

inline KvModel ReadModel(const kv::KvSource& source) {
  KvModel model;
  for (int layer = 0; layer < source.Shape().n_layers; ++layer) {
    for (int head = 0; head < source.Shape().n_kv_heads; ++head) {
      model.push_back(ReadModelHead(source, layer, head));
    }
  }
  return model;
}

}  // namespace vericache::testing_support
