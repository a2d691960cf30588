// Tiles of activation rows.
//
// Goal: every row lies in exactly one tile, tiles are even, and their memory does not overlap.
// Method: all row counts up to several tiles.
#include "kernels/activations.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/kernels.h"

namespace vericache::kernels {
namespace {

TEST(Activations, TilesCoverTheRowsEvenly) {
  for (int n_rows = 1; n_rows <= 100; ++n_rows) {
    Activations acts;
    ShapeActivations(acts, nullptr, n_rows, 64);
    EXPECT_EQ(acts.TileCount(), (n_rows + kMaxTileRows - 1) / kMaxTileRows);
    int next = 0;
    int fewest = kMaxTileRows;
    int most = 0;
    for (int t = 0; t < acts.TileCount(); ++t) {
      const ActTile tile = TileOf(acts, t);
      EXPECT_EQ(tile.first_row, next);
      next += tile.n_rows;
      fewest = std::min(fewest, tile.n_rows);
      most = std::max(most, tile.n_rows);
    }
    EXPECT_EQ(next, n_rows);
    EXPECT_LE(most, kMaxTileRows);
    EXPECT_LE(most - fewest, 1);
  }
}

TEST(Activations, TilesFollowEachOtherInMemoryAndFit) {
  for (const int n_rows : {1, 16, 17, 41}) {
    for (const int k : {32, 33, 96}) {
      Activations acts;
      ShapeActivations(acts, nullptr, n_rows, k);
      const int n_blocks = ActBlockCount(k);
      const int8_t* codes = acts.codes.As<int8_t>();
      const float* scales = acts.scales.As<float>();
      for (int t = 0; t < acts.TileCount(); ++t) {
        const ActTile tile = TileOf(acts, t);
        EXPECT_EQ(tile.Codes(0, 0), codes);
        EXPECT_EQ(tile.Scales(0, 0), scales);
        codes = tile.Codes(n_blocks, 0);
        scales = tile.Scales(n_blocks, 0);
      }
      EXPECT_LE(codes, acts.codes.As<int8_t>() + acts.codes.size());
      EXPECT_LE(scales, acts.scales.As<float>() + acts.scales.size() / sizeof(float));
    }
  }
}

TEST(Activations, ReusesItsMemoryForFewerRows) {
  Activations acts;
  ShapeActivations(acts, nullptr, 64, 1024);
  const std::byte* codes = acts.codes.data();
  ShapeActivations(acts, nullptr, 3, 64);
  EXPECT_EQ(acts.codes.data(), codes);
  EXPECT_EQ(acts.n_rows, 3);
  EXPECT_EQ(acts.k, 64);
}

}  // namespace
}  // namespace vericache::kernels
