// The one table of kernels. ref.cc fills it with the definition; avx2.cc, avx512.cc, ... with paths
// that equal it bit for bit.
//
// Kernels return void and have preconditions; validation happened at the edge. None of them
// allocates, locks or splits work: callers give each thread its share. No result depends on how the
// work was shared (I3). Threads: all functions are re-entrant; a table is immutable. Source:
// docs/numerics.md, sections in brackets.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/types.h"

namespace vericache::kernels {

enum class RopePairs : uint8_t { kAdjacent, kHalves };

// Attention over one storage format.
struct AttentionKernels {
  size_t (*query_bytes)(int n_rows, int head_dim);
  // Packs query rows for this format.
  // Shapes: out [query_bytes].
  void (*pack_queries)(const QueryRows& rows, std::byte* out);
  size_t (*scratch_bytes)(int n_rows, int head_dim);
  // Scores, softmax partials and weighted values of one chunk. [section 3]
  void (*chunk)(const AttentionTask& task);
  // The scores alone, in log2 units, -inf where invisible: what query-aware compressors read.
  // Shapes: scores [n_rows][512] f32, the first slots of each row written (padded up to a multiple
  // of 64 with -inf).
  void (*scores)(const AttentionTask& task, float* scores);
};

struct KernelTable {
  Isa isa;
  std::string_view name;

  // Quantises blocks [block_begin, block_end) of all rows of acts.x. [1]
  // Requires: acts shaped by ShapeActivations.
  void (*quantize)(Activations& acts, int block_begin, int block_end);
  // y[row, column] = sum_k x[row, k] * W[column, k] for panels [panel_begin, panel_end). [2]
  // Shapes: y points at column 16 * panel_begin of row 0; rows are y_stride floats apart. Padding
  // columns (>= w.n) are not written.
  void (*matmul)(const PackedMatrix& w, const Activations& acts, float* y, size_t y_stride,
                 int panel_begin, int panel_end);

  // y = (x * inv) * weight with inv = 1 / sqrt(mean(x^2) + eps), one row; y may be x. [4]
  void (*rms_norm)(const float* x, const float* weight, int n, float eps, float* y);
  // Rotates the first 2 * n_pairs values of one head in place. cos_sin: [n_pairs] cosines, then
  // [n_pairs] sines. [4]
  void (*rope)(float* head, const float* cos_sin, int n_pairs, RopePairs pairs);
  // y = (gate * sigmoid(gate)) * up. [4]
  void (*silu_mul)(const float* gate, const float* up, int n, float* y);
  // x += y. [4]
  void (*add)(float* x, const float* y, int n);

  // I16 codes of one head vector; returns the step. Key rule also serves queries. [3]
  // A NaN or infinity in x is stored as 0; *is_finite is set to false then (and left alone
  // otherwise). So is a vector whose norm overflows: all codes 0, step 0.
  // Shapes: x [head_dim], codes [head_dim].
  float (*encode_key)(const float* x, int head_dim, int16_t* codes, bool* is_finite);
  float (*encode_value)(const float* x, int head_dim, int16_t* codes, bool* is_finite);

  AttentionKernels attention[kKvFormatCount];  // by KvFormat
  // (M, L, O) merged with (m, l, o) of the next chunk; an empty chunk changes nothing. [3]
  void (*merge)(float& max, float& sum, float* out, float chunk_max, float chunk_sum,
                const float* chunk_out, int head_dim);
  // result = out * (1 / sum); 0 where sum = 0. [3]
  void (*finish)(float sum, const float* out, int head_dim, float* result);
};

// The scalar definition.
const KernelTable& RefKernels();
// Paths compiled in whose instruction sets this CPU and operating system offer, slowest first;
// always starts with ref.
std::vector<const KernelTable*> AvailableKernels();
// The fastest available path, or the one named ("ref", "avx2", "avx512", "avx512vnni").
// Errors: kInvalidArgument for an unknown name, with the list; kUnsupported if not on this machine.
Result<const KernelTable*> SelectKernels(std::string_view name_or_auto);

// Allocates code and scale space for [n_rows, k]; keeps a pointer to x. Reuses buffers.
void ShapeActivations(Activations& acts, const float* x, int n_rows, int k);

// ---- weight packing (pack.cc) ----
bool IsQuantized(WeightType type);
int BlockLength(WeightType type);             // weights per GGUF block: 1, 32 or 256
size_t GgufRowBytes(WeightType type, int k);  // bytes of one row as GGUF stores it
// Allocates the packed form; PackPanels fills it, panels shared out by the caller's threads.
PackedMatrix ShapePackedMatrix(WeightType type, int n, int k);
// Shapes: gguf_rows [rows of these panels, GgufRowBytes], from row 16 * panel_begin on.
void PackPanels(PackedMatrix& w, const std::byte* gguf_rows, int panel_begin, int panel_end);
// One row of W in f32, as the definition dequantises it: embeddings. [4]
void DequantizeRow(const PackedMatrix& w, int row, float* out);

}  // namespace vericache::kernels
