// Chunked soft matching: which slots of a head may merge, and merging them.
//
//   middle  |chunk 0      |chunk 1      |...     consecutive slots, the last chunk may be short
//   parts    A B A B A B A B ...                 even offsets A, odd offsets B (or as Split says)
//   pair     a -> the b of its chunk with the highest cosine of keys, the lower slot among equals
//
// A and B are disjoint, so merging has no chains; several a may join one b.
// Source: Hu et al., "CentroidKV" (arXiv 2506.11418), chunked soft matching.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "kv/head_slots.h"

namespace vericache::compress {

struct MergePair {
  int a = 0;
  int b = 0;
  double cosine = 0.0;  // of the keys; 0 if one of them is zero
};

// How a chunk is parted. The paper alternates; the others are there to be compared with it.
enum class Split : uint8_t {
  kAlternate,
  kHalves,  // A is the first half, of an odd number the larger one
  kRandom,  // by a coin for every position and round; a chunk may be all A or all B
};

// Slots [begin, end) of a head, cut into chunks.
struct Middle {
  int begin = 0;
  int end = 0;
  int chunk = 64;  // slots, at least 2
  Split split = Split::kAlternate;
  int round = 0;  // for kRandom
};

// The best pair of every a that has a b in its chunk, ascending by a.
// Cost: O(n * chunk * d / 4) multiplications, exact in integers.
std::vector<MergePair> MatchChunks(const kv::HeadSlots& slots, const Middle& middle);

// The n_pairs with the highest cosine, the lower a among equals; ascending by a.
std::vector<MergePair> BestPairs(std::vector<MergePair> pairs, int n_pairs);

// The slots with each b made the centroid of itself and the a that join it: key and value are means
// weighted by degree, the degree is the sum, the position is that of b. Everything else stays bit
// for bit; the merged a are gone.
// Requires: pairs ascending by a; no slot is an a and a b.
// Modifies: merged, which loses what it held.
void MergePairs(const kv::HeadSlots& slots, std::span<const MergePair> pairs,
                const kernels::KernelTable& kernels, kv::HeadSlots& merged);

}  // namespace vericache::compress
