// Goal: rotation tables are the definition's angles, and turn as llama.cpp turns.
// Method: long double libm for the plain, linear and llama3 forms; ggml's rope operator as peer
// for YaRN, with a bound for its F32 angles; golden bits.
#include "model/rope.h"

#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace vericache::model {
namespace {

RopeParams Plain(double base, int n_dims) {
  RopeParams params;
  params.base = base;
  params.n_dims = n_dims;
  return params;
}

RopeParams Yarn(double base, int n_dims, double factor, int original_context) {
  RopeParams params = Plain(base, n_dims);
  params.scaling = RopeScaling::kYarn;
  params.factor = factor;
  params.original_context = original_context;
  return params;
}

// The F32 nearest to an exact value, or a neighbour: binary64 angles lose bits as they grow.
void ExpectNear(float got, long double exact, double angle) {
  const double bound = std::ldexp(1.0, -25) + angle * std::ldexp(1.0, -52);
  EXPECT_NEAR(static_cast<double>(got), static_cast<double>(exact), bound) << "angle " << angle;
}

TEST(RopeTable, EqualsLibmForPlainLinearAndLlama3Angles) {
  RopeParams params = Plain(100000.0, 64);
  for (const bool has_factors : {false, true}) {
    if (has_factors) {
      for (int i = 0; i < 32; ++i) {
        params.frequency_factors.push_back(i < 10 ? 1.0f : 0.3f * static_cast<float>(i));
      }
    }
    for (const double factor : {1.0, 4.0}) {
      params.scaling = factor > 1 ? RopeScaling::kLinear : RopeScaling::kNone;
      params.factor = factor;
      RopeTable table(params);
      table.Extend(9000);
      for (const int position : {0, 1, 2, 255, 256, 1000, 8999}) {
        const float* row = table.CosSin(Position(position));
        for (int i = 0; i < 32; ++i) {
          long double angle = position * std::pow(100000.0L, -2.0L * i / 64) / factor;
          if (has_factors) angle /= params.frequency_factors[static_cast<size_t>(i)];
          ExpectNear(row[i], std::cos(angle), static_cast<double>(angle));
          ExpectNear(row[32 + i], std::sin(angle), static_cast<double>(angle));
        }
      }
    }
  }
}

TEST(RopeTable, ReachesPositionsOfAMillion) {
  RopeTable table(Plain(5000000.0, 2));
  table.Extend(1000001);
  const float* row = table.CosSin(Position(1000000));
  ExpectNear(row[0], std::cos(1e6L), 1e6);
  ExpectNear(row[1], std::sin(1e6L), 1e6);
}

TEST(RopeTable, KeepsRowsWhenItGrows) {
  RopeTable table(Plain(10000.0, 8));
  table.Extend(1);
  const float* row = table.CosSin(Position(3));
  table.Extend(5000);
  EXPECT_EQ(row, table.CosSin(Position(3)));
}

// ggml's cosines and sines of one position: pairs (1, 0) turned by its rope operator.
std::vector<float> GgmlCosSin(const RopeParams& params, int position) {
  const ggml_init_params init{.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = false};
  ggml_context* context = ggml_init(init);
  ggml_tensor* x = ggml_new_tensor_3d(context, GGML_TYPE_F32, params.n_dims, 1, 1);
  ggml_tensor* positions = ggml_new_tensor_1d(context, GGML_TYPE_I32, 1);
  static_cast<int32_t*>(positions->data)[0] = position;
  auto* values = static_cast<float*>(x->data);
  for (int i = 0; i < params.n_dims; ++i) values[i] = i % 2 == 0 ? 1.0f : 0.0f;
  ggml_tensor* turned = ggml_rope_ext(
      context, x, positions, nullptr, params.n_dims, GGML_ROPE_TYPE_NORMAL, params.original_context,
      static_cast<float>(params.base), static_cast<float>(1.0 / params.factor), 1.0f,
      static_cast<float>(params.attention_factor), static_cast<float>(params.beta_fast),
      static_cast<float>(params.beta_slow));
  ggml_cgraph* graph = ggml_new_graph(context);
  ggml_build_forward_expand(graph, turned);
  ggml_graph_compute_with_ctx(context, graph, 1);
  std::vector<float> cos_sin(static_cast<size_t>(params.n_dims));
  const auto* out = static_cast<const float*>(turned->data);
  for (int i = 0; i < params.n_dims / 2; ++i) {
    cos_sin[static_cast<size_t>(i)] = out[2 * i];
    cos_sin[static_cast<size_t>(params.n_dims / 2 + i)] = out[2 * i + 1];
  }
  ggml_free(context);
  return cos_sin;
}

TEST(RopeTable, TurnsAsGgmlDoesUnderYarn) {
  RopeParams params = Yarn(1000000.0, 128, 4.0, 32768);
  params.attention_factor = 0.875;
  RopeTable table(params);
  table.Extend(2000);
  for (const int position : {0, 1, 7, 300, 1999}) {
    const std::vector<float> peer = GgmlCosSin(params, position);
    const float* row = table.CosSin(Position(position));
    for (int i = 0; i < 128; ++i) {
      // ggml multiplies F32 angles up: about 64 roundings of the largest angle.
      EXPECT_NEAR(row[i], peer[static_cast<size_t>(i)], 2e-6 + position * 4e-6)
          << position << " " << i;
    }
  }
}

TEST(RopeTable, HasItsGoldenBits) {
  RopeParams params = Yarn(10000.0, 64, 8.0, 4096);
  params.frequency_factors.assign(32, 1.25f);
  RopeTable table(params);
  table.Extend(4096);
  uint64_t hash = 0xcbf29ce484222325u;
  for (int position = 0; position < 4096; ++position) {
    const float* row = table.CosSin(Position(position));
    for (int i = 0; i < 64; ++i) hash = (hash ^ std::bit_cast<uint32_t>(row[i])) * 0x100000001b3u;
  }
  EXPECT_EQ(hash, 0x25c2a0962bb90511u);
}

}  // namespace
}  // namespace vericache::model
