// The slots of one head, unpacked and row-major: what compression methods compute on.
//
// Codes are the I16 codes themselves, so that selecting and gathering are exact; floats are one
// multiplication away.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "kernels/kernels.h"
#include "kv/i16_slots.h"

namespace vericache::kv {

// A key and a value in f32. Shapes: [head_dim] each.
struct FloatSlot {
  const float* key = nullptr;
  const float* value = nullptr;
};

struct HeadSlots {
  explicit HeadSlots(int dims) : head_dim(dims) {}

  int head_dim;
  std::vector<int16_t> key_codes;    // [n, head_dim]
  std::vector<int16_t> value_codes;  // [n, head_dim]
  std::vector<float> key_steps;      // [n]
  std::vector<float> value_steps;    // [n]
  std::vector<int32_t> degrees;      // [n] tokens each slot stands for
  std::vector<Position> positions;   // [n] ascending

  int Count() const { return static_cast<int>(positions.size()); }
  void Reserve(int n_slots);
  // Removes all slots and keeps the memory.
  void Clear();
  const int16_t* KeyCodes(int slot) const { return key_codes.data() + CodesAt(slot); }
  const int16_t* ValueCodes(int slot) const { return value_codes.data() + CodesAt(slot); }
  I16Slot At(int slot) const;
  // Shapes: out [head_dim].
  void Key(int slot, float* out) const;
  void Value(int slot, float* out) const;

  // Appends a slot, bit for bit.
  void Append(const I16Slot& slot, int32_t degree, Position position);
  // Appends a slot encoded by the definition; a value that is not finite becomes 0.
  void Encode(const kernels::KernelTable& kernels, const FloatSlot& slot, int32_t degree,
              Position position);

 private:
  size_t CodesAt(int slot) const {
    return static_cast<size_t>(slot) * static_cast<size_t>(head_dim);
  }
};

}  // namespace vericache::kv
