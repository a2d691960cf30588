// The orthonormal Walsh-Hadamard transform: spreads what sits in a few channels over all of them.
// It is its own inverse, and keeps dots: q . k = Hq . Hk.
//
// Threads: pure. Source: Ashkboos et al., "QuaRot" (arXiv 2404.00456); llama.cpp rotates so as
// well.
#pragma once

namespace vericache::kernels {

// Transforms x [n] in place, in blocks of the largest power of two that divides n. A fixed order of
// additions: the same bits on every machine.
// Cost: n * log2(block) additions.
void Rotate(float* x, int n);

}  // namespace vericache::kernels
