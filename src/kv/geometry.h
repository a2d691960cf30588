// All offset arithmetic of the KV above one run of slots: blocks, layers, heads. Nobody else
// multiplies by head_dim.
//
// A block is 256 tokens cut by absolute position; the unit of storage and movement is one layer of
// one block, the K and V of all KV heads together: keys of every head, values of every head, key
// steps, value steps. The same bytes in every tier. The tail of a draft KV is laid out as one
// larger block per layer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_layout.h"

namespace vericache::kv {

inline constexpr int kBlockTokens = 256;

struct KvShape {
  int n_layers = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  bool operator==(const KvShape&) const = default;

  // (layer, head) pairs, and the place of one in a layer-major list of them.
  int HeadCount() const { return n_layers * n_kv_heads; }
  size_t HeadIndex(int layer, int head) const {
    return static_cast<size_t>(layer) * static_cast<size_t>(n_kv_heads) + static_cast<size_t>(head);
  }
};

// Bytes of the I16 truth per token and head: 2 per element and one F32 step per vector, K and V.
constexpr size_t I16SlotBytes(int head_dim) {
  return 2 * (static_cast<size_t>(head_dim) * sizeof(int16_t) + sizeof(float));
}

// The same over all layers and heads.
constexpr size_t FullKvBytesPerToken(const KvShape& shape) {
  return static_cast<size_t>(shape.n_layers) * static_cast<size_t>(shape.n_kv_heads) *
         I16SlotBytes(shape.head_dim);
}

// Byte offsets inside one layer of one block of n_slots tokens.
class BlockLayout {
 public:
  // Requires: n_slots is a multiple of 64.
  explicit BlockLayout(const KvShape& shape, int n_slots = kBlockTokens)
      : shape_(shape), n_slots_(n_slots) {}

  int SlotCount() const { return n_slots_; }
  size_t Bytes() const { return StepsBegin() + 2 * StepsBytes(); }
  size_t KeysAt(int head) const { return static_cast<size_t>(head) * HeadCodesBytes(); }
  size_t ValuesAt(int head) const { return CodesBytes() + KeysAt(head); }
  size_t KeyStepsAt(int head) const {
    return StepsBegin() + static_cast<size_t>(head) * HeadStepsBytes();
  }
  size_t ValueStepsAt(int head) const { return KeyStepsAt(head) + StepsBytes(); }

 private:
  size_t HeadCodesBytes() const {
    return static_cast<size_t>(shape_.head_dim) * static_cast<size_t>(n_slots_) * sizeof(int16_t);
  }
  size_t HeadStepsBytes() const { return static_cast<size_t>(n_slots_) * sizeof(float); }
  size_t CodesBytes() const { return static_cast<size_t>(shape_.n_kv_heads) * HeadCodesBytes(); }
  size_t StepsBytes() const { return static_cast<size_t>(shape_.n_kv_heads) * HeadStepsBytes(); }
  size_t StepsBegin() const { return 2 * CodesBytes(); }

  KvShape shape_;
  int n_slots_;
};

}  // namespace vericache::kv
