// Cosines and sines of rotary position embeddings, in F32, from angles in binary64.
//
// Pair i of n turns by position * frequency_i, where frequency_i starts as base^(-2i/n_dims),
// divided by the file's frequency factor (llama3). Linear scaling divides it by `factor`. YaRN
// mixes the two by a ramp over i, between the pairs that turn beta_fast and beta_slow times in the
// original context, and multiplies cosine and sine by (1 + 0.1 ln factor) * attention_factor.
// Every step is one of base/exact_math.h or a plain binary64 operation: no machine differs (I3).
// Threads: Extend by one thread while nobody reads. Source: docs/numerics.md section 4; YaRN
// (arXiv 2309.00071) as ggml computes it.
#pragma once

#include <vector>

#include "base/ids.h"
#include "model/model.h"

namespace vericache::model {

class RopeTable {
 public:
  explicit RopeTable(const RopeParams& params);

  int PairCount() const { return static_cast<int>(frequencies_.size()); }
  // Makes positions [0, n_positions) readable. Cost: 60 ns per new position and pair.
  void Extend(int n_positions);
  // [n_pairs] cosines, then [n_pairs] sines, of a position made readable before; stays valid.
  const float* CosSin(Position position) const;

 private:
  std::vector<double> frequencies_;         // [n_pairs] radians per position
  double magnitude_ = 1.0;                  // multiplies cosine and sine
  std::vector<std::vector<float>> blocks_;  // each [kBlockPositions][2][n_pairs]
};

}  // namespace vericache::model
