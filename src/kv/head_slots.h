// The slots of one head, unpacked and row-major: what compression methods compute on.
//
// Codes are the I16 codes themselves, so that selecting and gathering are exact; floats are one multiplication away.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/segment.h"

namespace vericache::kv {

struct HeadSlots {
  int head_dim = 0;
  std::vector<int16_t> key_codes;    // [n, head_dim]
  std::vector<int16_t> value_codes;  // [n, head_dim]
  std::vector<float> key_steps;      // [n]
  std::vector<float> value_steps;    // [n]
  std::vector<int32_t> degrees;      // [n] tokens each slot stands for
  std::vector<Position> positions;   // [n] ascending

  int Count() const { return static_cast<int>(positions.size()); }
  // Shapes: out [head_dim].
  void Key(int slot, float* out) const;
  void Value(int slot, float* out) const;
  // Appends a slot whose K and V are given in f32, encoded by the definition.
  void Append(const float* key, const float* value, int32_t degree, Position position);
  // Appends slot `slot` of another head's slots, bit for bit.
  void AppendFrom(const HeadSlots& other, int slot);
};

// The slots of (layer, head) whose position is below `end`. I16 segments come bit for bit; packed ones are dequantised and encoded anew.
HeadSlots ReadHead(const KvSource& source, int layer, int head, Position end);
// The slots named, ascending.
HeadSlots Select(const HeadSlots& slots, std::span<const int> kept);

}  // namespace vericache::kv
