// Strong ids. A logical position, a physical slot, a batch row and a token are four different
// things once a KV is compressed, and this is where the off-by-ones live: they do not convert into
// each other.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace vericache {

template <typename Tag, typename Rep = int32_t>
struct StrongId {
  using rep = Rep;
  Rep value = 0;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  constexpr auto operator<=>(const StrongId&) const = default;
  constexpr StrongId& operator++() {
    ++value;
    return *this;
  }
  constexpr StrongId operator+(Rep n) const { return StrongId(static_cast<Rep>(value + n)); }
  constexpr Rep operator-(StrongId other) const { return value - other.value; }
};

using Position = StrongId<struct PositionTag>;  // index of a token in its sequence, from 0
using Slot = StrongId<struct SlotTag>;      // index of a stored K/V pair in one head of a segment
using TokenId = StrongId<struct TokenTag>;  // index into the vocabulary

}  // namespace vericache

template <typename Tag, typename Rep>
struct std::hash<vericache::StrongId<Tag, Rep>> {
  size_t operator()(vericache::StrongId<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
