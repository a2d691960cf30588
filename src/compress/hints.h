// What methods may ask of the forward pass, beyond keys and values. Collected by taps, only when
// needed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace vericache::compress {

enum class Needs : uint8_t { kNothing, kWindowQueries };

// Queries (after RoPE) of the last tokens before the compression.
struct WindowQueries {
  int n_layers = 0;
  int n_heads = 0;  // query heads
  int head_dim = 0;
  std::vector<Position> positions;    // [n_window] ascending
  std::vector<std::vector<float>> q;  // [layer][n_window, n_heads, head_dim]
};

struct Hints {
  WindowQueries window;
};

}  // namespace vericache::compress
