// The functions each path is assembled from: internal to this room. One namespace per instruction
// set, the same names in each; a path that has no better version of a function takes the one of the
// next smaller path in its table.
//
// Every ISA file keeps its own code in anonymous namespaces and calls no inline function of
// external linkage: see numerics.h.
#pragma once

#include "kernels/kernels.h"

namespace vericache::kernels {

namespace ref {  // rows_ref.cc, matmul_ref.cc, attention_ref.cc
void Quantize(Activations& acts, int block_begin, int block_end);
void Matmul(const PackedMatrix& w, const Activations& acts, float* y, size_t y_stride,
            int panel_begin, int panel_end);
void RmsNorm(const float* x, const float* weight, int n, float eps, float* y);
void Rope(float* head, const float* cos_sin, int n_pairs, RopePairs pairs);
void SiluMul(const float* gate, const float* up, int n, float* y);
void Add(float* x, const float* y, int n);
float EncodeKey(const float* x, int head_dim, int16_t* codes, bool* is_finite);
float EncodeValue(const float* x, int head_dim, int16_t* codes, bool* is_finite);
extern const AttentionKernels kAttention[kKvFormatCount];
void Merge(float& max, float& sum, float* out, float chunk_max, float chunk_sum,
           const float* chunk_out, int head_dim);
void Finish(float sum, const float* out, int head_dim, float* result);
}  // namespace ref

namespace avx2 {  // rows_avx2.cc, matmul_avx2.cc, attention_avx2.cc
void Quantize(Activations& acts, int block_begin, int block_end);
void Matmul(const PackedMatrix& w, const Activations& acts, float* y, size_t y_stride,
            int panel_begin, int panel_end);
void RmsNorm(const float* x, const float* weight, int n, float eps, float* y);
void Rope(float* head, const float* cos_sin, int n_pairs, RopePairs pairs);
void SiluMul(const float* gate, const float* up, int n, float* y);
void Add(float* x, const float* y, int n);
float EncodeKey(const float* x, int head_dim, int16_t* codes, bool* is_finite);
float EncodeValue(const float* x, int head_dim, int16_t* codes, bool* is_finite);
extern const AttentionKernels kAttention[kKvFormatCount];
void Merge(float& max, float& sum, float* out, float chunk_max, float chunk_sum,
           const float* chunk_out, int head_dim);
void Finish(float sum, const float* out, int head_dim, float* result);
}  // namespace avx2

namespace avx512 {  // F, BW, VL, DQ: rows_avx512.cc, matmul_avx512.cc, attention_avx512.cc
void Quantize(Activations& acts, int block_begin, int block_end);
void Matmul(const PackedMatrix& w, const Activations& acts, float* y, size_t y_stride,
            int panel_begin, int panel_end);
void RmsNorm(const float* x, const float* weight, int n, float eps, float* y);
void Rope(float* head, const float* cos_sin, int n_pairs, RopePairs pairs);
void SiluMul(const float* gate, const float* up, int n, float* y);
void Add(float* x, const float* y, int n);
float EncodeKey(const float* x, int head_dim, int16_t* codes, bool* is_finite);
float EncodeValue(const float* x, int head_dim, int16_t* codes, bool* is_finite);
extern const AttentionKernels kAttention[kKvFormatCount];
void Merge(float& max, float& sum, float* out, float chunk_max, float chunk_sum,
           const float* chunk_out, int head_dim);
void Finish(float sum, const float* out, int head_dim, float* result);
}  // namespace avx512

namespace avx512vnni {  // only what has a dot product: matmul_avx512_vnni.cc,
                        // attention_avx512_vnni.cc
void Matmul(const PackedMatrix& w, const Activations& acts, float* y, size_t y_stride,
            int panel_begin, int panel_end);
extern const AttentionKernels kAttention[kKvFormatCount];
}  // namespace avx512vnni

// The assembled tables (ref.cc has RefKernels). Functions, so that no table depends on the order of
// static initialisation.
const KernelTable& Avx2Kernels();
const KernelTable& Avx512Kernels();
const KernelTable& Avx512VnniKernels();

}  // namespace vericache::kernels
