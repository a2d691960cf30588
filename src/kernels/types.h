// Plain data the kernels work on: packed weights, quantised activations, runs of KV slots. No
// behaviour, no policy.
//
// Layouts are fixed here and in the comments below; numerics.h states the arithmetic. Pointers are
// non-owning unless said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"

namespace vericache::kernels {

enum class Isa : uint8_t { kRef, kAvx2, kAvx512, kAvx512Vnni };

// ---- weights ------------------------------------------------------------------------------------

// Weight types with a packed form of their own. Every other GGUF type is dequantised to kF32 when
// it is loaded.
enum class WeightType : uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4K,
  kQ5K,
  kQ6K
};

inline constexpr int kPanelColumns = 16;  // output columns of a panel: lanes of a 512-bit register
inline constexpr int kActBlock = 32;      // activations that share one scale
inline constexpr int kMaxTileRows = 16;   // rows of an activation tile

// W [n, k] in panels of 16 output columns, each read front to back (layout per type: pack.cc).
struct PackedMatrix {
  WeightType type = WeightType::kF32;
  int n = 0;  // output columns; padded to 16 with zero weights
  int k = 0;  // inputs; quantised types need a multiple of their block (32 or 256)
  int n_panels = 0;
  size_t panel_bytes = 0;
  size_t quant_offset = 0;  // where the codes of a panel start, after its scales; 0 if interleaved
  AlignedBuffer data;

  const std::byte* Panel(int panel_idx) const {
    return data.data() + static_cast<size_t>(panel_idx) * panel_bytes;
  }
};

// ---- activations --------------------------------------------------------------------------------

// Rows quantised to int8 in tiles of at most 16 rows; shared by every weight type that multiplies
// them. Float weight types read `x` itself, so a caller that multiplies one of those keeps x alive.
struct Activations {
  int n_rows = 0;
  int k = 0;
  const float* x = nullptr;  // [n_rows, k] f32, not owned
  AlignedBuffer codes;       // per tile: [k/32][tile rows][32] i8
  AlignedBuffer scales;  // per tile: [k/32][planes][tile rows] f32/i32, planes as in activations.h

  int TileCount() const { return (n_rows + kMaxTileRows - 1) / kMaxTileRows; }
  // Tiles are as even as possible, so that no tile is a lone row behind full ones.
  int TileBegin(int tile) const {
    return static_cast<int>(static_cast<int64_t>(n_rows) * tile / TileCount());
  }
};

// ---- KV slots -----------------------------------------------------------------------------------

inline constexpr int kChunkSlots = 512;    // softmax chunk (numerics.md section 3)
inline constexpr int kSubBlockSlots = 64;  // exact PV sums; a run starts at a multiple of it
inline constexpr int kMaxHeadDim = 256;

// How K and V of a run are stored. kI16 is the truth's format; the others are draft formats only.
enum class KvFormat : uint8_t { kI16 = 0, kQ8 = 1, kQ4 = 2, kQ2 = 3 };
inline constexpr int kKvFormatCount = 4;

// Consecutive slots of one KV head whose bytes are contiguous. Layouts in kv_layout.h.
// kI16:        key_scales, value_scales [n_slots padded to 64] f32 steps.
// kQ8/kQ4/kQ2: keys per channel in groups of 64 slots: key_scales [n/64][2][head_dim] f32
//              (scale, zero); values per slot: value_scales [n/64][2][64] f32 (scale, zero).
// log_weights  [n_slots] f32, log2 of the tokens a slot stands for; nullptr: all 0.
struct SlotRun {
  const std::byte* keys = nullptr;
  const std::byte* values = nullptr;
  const float* key_scales = nullptr;
  const float* value_scales = nullptr;
  const float* log_weights = nullptr;
  int n_slots = 0;
};

// The rows of one KV head against one chunk (<= 512 slots) of one segment.
// Row i is query token i / group, query head i % group of the KV head.
struct AttentionTask {
  int head_dim = 0;
  int n_rows = 0;
  const std::byte* queries = nullptr;  // from pack_queries of the same format
  std::span<const SlotRun> runs;  // in slot order; every run but the last is a multiple of 64 slots
  const int32_t* n_visible = nullptr;   // [n_rows] row i sees the chunk's first n_visible[i] slots
  const std::byte* prefetch = nullptr;  // what will be read next, or nullptr
  std::byte* scratch = nullptr;         // scratch_bytes(n_rows, head_dim)
  float* max = nullptr;  // out [n_rows]: max score (log2 units), -inf if nothing is visible
  float* sum = nullptr;  // out [n_rows]: sum of exp2(score - max)
  float* out = nullptr;  // out [n_rows, head_dim]: unnormalised
};

// Where the query rows of a KV head lie:
// row i at q + (i / group) * token_stride + (i % group) * head_dim.
struct QueryRows {
  const float* q = nullptr;
  size_t token_stride = 0;
  int group = 1;
  int first_row = 0;
  int n_rows = 0;
  int head_dim = 0;
};

}  // namespace vericache::kernels
