// Finds NaN and infinity in rows of floats: they must reach no SIMD maximum and no user.
// Source: docs/numerics.md section 3, non-finite values.
#pragma once

#include "kernels/kernels.h"

namespace vericache::model {

bool AreFinite(const float* x, int n);
// Replaces every NaN and infinity by 0. Returns: whether there was none.
bool ZeroNonFinite(float* x, int n);
// Whether the key rule encodes a head vector as it is: all finite, and so is its norm.
bool IsEncodable(const kernels::KernelTable& kernels, const float* x, int head_dim);

}  // namespace vericache::model
