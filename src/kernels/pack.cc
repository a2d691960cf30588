// GGUF rows into panels and back. Layout: packed_layout.h.

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/f16.h"
#include "kernels/kernels.h"
#include "kernels/packed_layout.h"

namespace vericache::kernels {
namespace {

constexpr uint32_t kLowNibbles = 0x0f0f0f0f;

uint8_t Byte(const std::byte* p) { return std::to_integer<uint8_t>(*p); }

uint32_t Load32(const void* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}
void Store32(void* p, uint32_t word) { std::memcpy(p, &word, sizeof word); }

float LoadF16(const std::byte* p) {
  uint16_t half;
  std::memcpy(&half, p, sizeof half);
  return F16ToF32(half);
}

// ---- reading GGUF -------------------------------------------------------------------------------

// The 6-bit scale and minimum of block j in the 12 bytes of a K super-block.
void ReadSubScales(const std::byte* packed, int j, uint8_t (&out)[2]) {
  const auto at = [&](int i) { return static_cast<uint32_t>(Byte(packed + i)); };
  if (j < 4) {
    out[0] = static_cast<uint8_t>(at(j) & 63u);
    out[1] = static_cast<uint8_t>(at(j + 4) & 63u);
  } else {
    out[0] = static_cast<uint8_t>((at(j + 4) & 15u) | (at(j - 4) >> 6) << 4);
    out[1] = static_cast<uint8_t>((at(j + 4) >> 4) | (at(j) >> 6) << 4);
  }
}

// ---- lines of codes -----------------------------------------------------------------------------

void LoadCodes(int bits, const std::byte* lines, uint8_t* codes) {
  const auto line = [&](int i) { return Load32(lines + i * kLineBytes); };
  for (int g = 0; g < 8; ++g) {
    uint32_t word = bits == 8 ? line(g) : line(g % 4) >> g / 4 * 4 & kLowNibbles;
    if (bits == 5) word |= (line(4) >> g & 0x01010101u) << 4;
    if (bits == 6) word |= (line(4 + g / 4) >> g % 4 * 2 & 0x03030303u) << 4;
    Store32(codes + 4 * g, word);
  }
}

// ---- GGUF codes to lines, a word at a time: 4 inputs of one column ----------------------------

constexpr uint32_t kTopBits = 0x80808080;
constexpr uint32_t kLowBits = 0x01010101;
constexpr uint32_t kLowPairs = 0x03030303;
constexpr int kMaxLines = 8;

struct Words {
  uint32_t line[kMaxLines];
};

// Q5_0 and Q5_1 keep fifth bits in the order of the inputs, lines keep those of group g in bit g of
// each byte. For a byte of two groups: bit 0 and bit 1 of every byte of the entry.
constexpr std::array<uint32_t, 256> SpreadTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (uint32_t j = 0; j < 4; ++j) {
      table[byte] |= ((byte >> j & 1u) | (byte >> (4 + j) & 1u) << 1) << 8 * j;
    }
  }
  return table;
}
constexpr std::array<uint32_t, 256> kSpread = SpreadTable();

Words CodesOfQ8_0(const std::byte* codes) {
  Words words;
  for (int g = 0; g < 8; ++g) words.line[g] = Load32(codes + 4 * g) ^ kTopBits;  // + 128
  return words;
}

// Q4_0 to Q5_1 keep inputs i and i + 16 in one byte, as the lines do.
Words CodesOfQ4OrQ5(int code_bits, const std::byte* p) {
  Words words;
  const std::byte* nibbles = code_bits == 5 ? p + 4 : p;
  for (int i = 0; i < 4; ++i) words.line[i] = Load32(nibbles + 4 * i);
  if (code_bits == 5) {
    uint32_t line = 0;
    for (int i = 0; i < 4; ++i) line |= kSpread[Byte(p + i)] << 2 * i;
    words.line[4] = line;
  }
  return words;
}

Words CodesOfQ4KOrQ5K(int code_bits, const std::byte* super, int j) {
  Words words;
  const std::byte* nibbles = super + (code_bits == 5 ? 48 : 16) + j / 2 * 32;
  for (int i = 0; i < 4; ++i) {
    const uint32_t a = Load32(nibbles + 4 * i);
    const uint32_t b = Load32(nibbles + 4 * i + 16);
    words.line[i] = j % 2 == 0 ? (a & kLowNibbles) | (b & kLowNibbles) << 4
                               : (a >> 4 & kLowNibbles) | (b & ~kLowNibbles);
  }
  if (code_bits == 5) {
    uint32_t line = 0;
    for (int g = 0; g < 8; ++g) line |= (Load32(super + 16 + 4 * g) >> j & kLowBits) << g;
    words.line[4] = line;
  }
  return words;
}

Words CodesOfQ6K(const std::byte* super, int j) {
  Words words;
  const int half = j / 4;
  const int quarter = j % 4;
  const std::byte* low = super + half * 64 + quarter % 2 * 32;
  const std::byte* high = super + 128 + half * 32;
  for (int i = 0; i < 4; ++i) {
    const uint32_t a = Load32(low + 4 * i);
    const uint32_t b = Load32(low + 4 * i + 16);
    words.line[i] = quarter < 2 ? (a & kLowNibbles) | (b & kLowNibbles) << 4
                                : (a >> 4 & kLowNibbles) | (b & ~kLowNibbles);
  }
  for (int h = 0; h < 2; ++h) {
    uint32_t line = 0;
    for (int i = 0; i < 4; ++i) {
      line |= (Load32(high + 16 * h + 4 * i) >> 2 * quarter & kLowPairs) << 2 * i;
    }
    words.line[4 + h] = line;
  }
  return words;
}

// The scales of block `b` of one column; those of a super-block come with each of its blocks.
template <WeightType type>
void PackScales(const std::byte* block, int b, int column, std::byte* panel) {
  constexpr PackedLayout kLayout = LayoutOf(type);
  const int f16_at = column * 2;
  if constexpr (!IsSuper(type)) {
    std::byte* scales = panel + ScaleOffset(type, b);
    std::memcpy(scales + f16_at, block, 2);
    if constexpr (kLayout.has_min) std::memcpy(scales + kPlaneBytes + f16_at, block + 2, 2);
    return;
  }
  std::byte* scales = panel + SuperOffset(type, b);
  std::byte* sub = scales + kSuperSubScales + column;
  const int j = b % kSuperBlocks;
  if constexpr (kLayout.has_halves) {
    std::memcpy(scales + f16_at, block + 208, 2);
    for (int h = 0; h < 2; ++h) sub[(2 * j + h) * kPanelColumns] = block[192 + 2 * j + h];
  } else {
    std::memcpy(scales + f16_at, block, 2);
    std::memcpy(scales + kPlaneBytes + f16_at, block + 2, 2);
    uint8_t pair[2];
    ReadSubScales(block + 4, j, pair);
    sub[j * kPanelColumns] = std::byte{pair[0]};
    sub[(kSuperBlocks + j) * kPanelColumns] = std::byte{pair[1]};
  }
}

template <WeightType type>
Words CodesOf(const std::byte* block, int j) {
  constexpr int kBits = LayoutOf(type).code_bits;
  if constexpr (type == WeightType::kQ8_0) return CodesOfQ8_0(block + 2);
  if constexpr (type == WeightType::kQ6K) return CodesOfQ6K(block, j);
  if constexpr (IsSuper(type)) return CodesOfQ4KOrQ5K(kBits, block, j);
  return CodesOfQ4OrQ5(kBits, block + (LayoutOf(type).has_min ? 4 : 2));
}

// rows: the first of the panel's. Blocks outside, columns inside: lines are written whole.
template <WeightType type>
void PackQuantizedPanel(const PackedMatrix& w, const std::byte* rows, int n_columns,
                        std::byte* panel) {
  constexpr PackedLayout kLayout = LayoutOf(type);
  const size_t row_bytes = GgufRowBytes(type, w.k);
  for (int b = 0; b < w.k / kActBlock; ++b) {
    const int gguf_block = IsSuper(type) ? b / kSuperBlocks : b;
    const std::byte* block = rows + static_cast<size_t>(gguf_block * kLayout.gguf_block_bytes);
    std::byte* lines = panel + CodeOffset(type, w.quant_offset, b);
    for (int c = 0; c < n_columns; ++c) {
      const std::byte* column = block + static_cast<size_t>(c) * row_bytes;
      const Words words = CodesOf<type>(column, b % kSuperBlocks);
      for (int i = 0; i < kLayout.code_bits; ++i) {
        Store32(lines + i * kLineBytes + c * 4, words.line[i]);
      }
      PackScales<type>(column, b, c, panel);
    }
  }
}

// In blocks of inputs: a whole column at a time would write all of the panel for each of them, one
// input at a time would read 16 rows whose addresses may share a cache set.
template <typename Item>
void PackFloatPanel(const PackedMatrix& w, const std::byte* rows, int n_columns, std::byte* panel) {
  const auto k = static_cast<size_t>(w.k);
  for (size_t begin = 0; begin < k; begin += kActBlock) {
    const size_t end = std::min(begin + kActBlock, k);
    for (size_t c = 0; c < static_cast<size_t>(n_columns); ++c) {
      for (size_t i = begin; i < end; ++i) {
        std::memcpy(panel + (i * kPanelColumns + c) * sizeof(Item),
                    rows + (c * k + i) * sizeof(Item), sizeof(Item));
      }
    }
  }
}

using PackPanel = void (*)(const PackedMatrix& w, const std::byte* rows, int n_columns,
                           std::byte* panel);

PackPanel PackPanelOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return PackFloatPanel<uint32_t>;
    case WeightType::kF16:
    case WeightType::kBf16:
      return PackFloatPanel<uint16_t>;
    case WeightType::kQ8_0:
      return PackQuantizedPanel<WeightType::kQ8_0>;
    case WeightType::kQ4_0:
      return PackQuantizedPanel<WeightType::kQ4_0>;
    case WeightType::kQ4_1:
      return PackQuantizedPanel<WeightType::kQ4_1>;
    case WeightType::kQ5_0:
      return PackQuantizedPanel<WeightType::kQ5_0>;
    case WeightType::kQ5_1:
      return PackQuantizedPanel<WeightType::kQ5_1>;
    case WeightType::kQ4K:
      return PackQuantizedPanel<WeightType::kQ4K>;
    case WeightType::kQ5K:
      return PackQuantizedPanel<WeightType::kQ5K>;
    case WeightType::kQ6K:
      return PackQuantizedPanel<WeightType::kQ6K>;
  }
  return nullptr;
}

float LoadFloat(WeightType type, const std::byte* p) {
  if (type == WeightType::kF32) {
    float value;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return type == WeightType::kF16 ? F16ToF32(bits) : Bf16ToF32(bits);
}

size_t PadToLine(size_t n_bytes) { return (n_bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

}  // namespace

bool IsQuantized(WeightType type) { return LayoutOf(type).code_bits != 0; }

int BlockLength(WeightType type) { return LayoutOf(type).gguf_block_length; }

size_t GgufRowBytes(WeightType type, int k) {
  const PackedLayout layout = LayoutOf(type);
  return static_cast<size_t>(k / layout.gguf_block_length) *
         static_cast<size_t>(layout.gguf_block_bytes);
}

PackedMatrix ShapePackedMatrix(WeightType type, int n, int k) {
  const PackedLayout layout = LayoutOf(type);
  VC_CHECK(n > 0 && k > 0 && k % layout.gguf_block_length == 0, "n = {}, k = {}, block of {}", n, k,
           layout.gguf_block_length);
  const size_t n_blocks = static_cast<size_t>(k / kActBlock);
  PackedMatrix w;
  w.type = type;
  w.n = n;
  w.k = k;
  w.n_panels = (n + kPanelColumns - 1) / kPanelColumns;
  if (!IsQuantized(type)) {
    w.panel_bytes = PadToLine(static_cast<size_t>(k) * kPanelColumns *
                              static_cast<size_t>(layout.gguf_block_bytes));
  } else if (IsSuper(type)) {
    w.panel_bytes = n_blocks / kSuperBlocks * SuperBytes(type);
  } else {
    w.quant_offset = PadToLine(ScaleOffset(type, static_cast<int>(n_blocks)));
    w.panel_bytes = w.quant_offset + n_blocks * CodeBytes(type);
  }
  w.data = AlignedBuffer(w.panel_bytes * static_cast<size_t>(w.n_panels));
  return w;
}

void PackPanels(PackedMatrix& w, const std::byte* gguf_rows, int panel_begin, int panel_end) {
  const PackPanel pack = PackPanelOf(w.type);
  const size_t row_bytes = GgufRowBytes(w.type, w.k);
  for (int p = panel_begin; p < panel_end; ++p) {
    const int n_columns = std::min(kPanelColumns, w.n - p * kPanelColumns);
    const auto skipped = static_cast<size_t>((p - panel_begin) * kPanelColumns);
    pack(w, gguf_rows + skipped * row_bytes, n_columns,
         w.data.data() + static_cast<size_t>(p) * w.panel_bytes);
  }
}

WeightBlock UnpackBlock(const PackedMatrix& w, int column, int block) {
  const PackedLayout layout = LayoutOf(w.type);
  const std::byte* panel = w.Panel(column / kPanelColumns);
  const int c = column % kPanelColumns;
  WeightBlock out{};
  uint8_t codes[kActBlock];
  LoadCodes(layout.code_bits, panel + CodeOffset(w.type, w.quant_offset, block) + c * 4, codes);
  for (int i = 0; i < kActBlock; ++i)
    out.weights[i] = static_cast<int16_t>(codes[i] - layout.code_offset);

  const std::byte* scales =
      panel + (IsSuper(w.type) ? SuperOffset(w.type, block) : ScaleOffset(w.type, block));
  const float d = LoadF16(scales + c * 2);
  const float m = layout.has_min ? LoadF16(scales + kPlaneBytes + c * 2) : 0.0f;
  const int j = block % kSuperBlocks;
  const auto sub = [&](int i) { return Byte(scales + kSuperSubScales + i * kPanelColumns + c); };
  if (layout.has_halves) {
    for (int h = 0; h < 2; ++h)
      out.scale[h] = d * static_cast<float>(static_cast<int8_t>(sub(2 * j + h)));
  } else if (IsSuper(w.type)) {
    out.scale[0] = out.scale[1] = d * static_cast<float>(sub(j));
    out.min = -(m * static_cast<float>(sub(kSuperBlocks + j)));
  } else {
    out.scale[0] = out.scale[1] = d;
    out.min = m;
  }
  return out;
}

void DequantizeRow(const PackedMatrix& w, int row, float* out) {
  if (!IsQuantized(w.type)) {
    const size_t item = GgufRowBytes(w.type, 1);
    const std::byte* from =
        w.Panel(row / kPanelColumns) + static_cast<size_t>(row % kPanelColumns) * item;
    for (size_t k = 0; k < static_cast<size_t>(w.k); ++k)
      out[k] = LoadFloat(w.type, from + k * kPanelColumns * item);
    return;
  }
  const bool has_min = LayoutOf(w.type).has_min;
  for (int b = 0; b < w.k / kActBlock; ++b) {
    const WeightBlock block = UnpackBlock(w, row, b);
    for (int i = 0; i < kActBlock; ++i) {
      const float product = static_cast<float>(block.weights[i]) * block.scale[i / 16];
      out[b * kActBlock + i] = has_min ? product + block.min : product;
    }
  }
}

}  // namespace vericache::kernels
