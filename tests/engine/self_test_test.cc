// Goal: every path of this machine passes, and one wrong bit in any operation is found.
// Method: tables in which one entry is replaced by a slightly wrong one.

#include "engine/self_test.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace vericache::engine {
namespace {

using kernels::KernelTable;
using kernels::RefKernels;

TEST(SelfTest, PassesOnEveryPathInMilliseconds) {
  for (const KernelTable* table : kernels::AvailableKernels()) {
    const Status status = SelfTest(*table);
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
}

// The next float up: the smallest mistake there is.
void Nudge(float& x) { x = std::nextafter(x, 1e30f); }

void ExpectFound(const KernelTable& table, std::string_view operation) {
  const Status status = SelfTest(table);
  ASSERT_FALSE(status.has_value()) << operation;
  EXPECT_EQ(status.error().code, ErrorCode::kInternal);
  EXPECT_NE(status.error().message.find(operation), std::string::npos) << status.error().message;
}

TEST(SelfTest, FindsOneWrongBitInAMatmul) {
  KernelTable table = RefKernels();
  table.matmul = [](const kernels::PackedMatrix& w, const kernels::Activations& acts, float* y,
                    size_t y_stride, int begin, int end) {
    RefKernels().matmul(w, acts, y, y_stride, begin, end);
    if (w.type == kernels::WeightType::kQ5_1) Nudge(y[3]);
  };
  ExpectFound(table, "Q5_1");
}

TEST(SelfTest, FindsOneWrongBitInARowOperation) {
  const auto expect_found = [](auto spoil) {
    KernelTable table = RefKernels();
    spoil(table);
    ExpectFound(table, "row operation");
  };
  expect_found([](KernelTable& t) {
    t.add = [](float* x, const float* y, int n) {
      RefKernels().add(x, y, n);
      Nudge(x[n - 1]);
    };
  });
  expect_found([](KernelTable& t) {
    t.rms_norm = [](const float* x, const float* weight, int n, float eps, float* y) {
      RefKernels().rms_norm(x, weight, n, eps, y);
      Nudge(y[0]);
    };
  });
  expect_found([](KernelTable& t) {
    t.silu_mul = [](const float* gate, const float* up, int n, float* y) {
      RefKernels().silu_mul(gate, up, n, y);
      Nudge(y[n / 2]);
    };
  });
  expect_found([](KernelTable& t) {
    t.rope = [](float* head, const float* cos_sin, int n_pairs, kernels::RopePairs pairs) {
      RefKernels().rope(head, cos_sin, n_pairs, pairs);
      if (pairs == kernels::RopePairs::kHalves) Nudge(head[1]);
    };
  });
  expect_found([](KernelTable& t) {
    t.encode_value = [](const float* x, int head_dim, int16_t* codes, bool* is_finite) {
      const float step = RefKernels().encode_value(x, head_dim, codes, is_finite);
      ++codes[head_dim - 1];
      return step;
    };
  });
}

TEST(SelfTest, FindsOneWrongBitInAttention) {
  KernelTable table = RefKernels();
  table.attention[static_cast<int>(kernels::KvFormat::kQ4)].chunk =
      [](const kernels::AttentionTask& task) {
        RefKernels().attention[static_cast<int>(kernels::KvFormat::kQ4)].chunk(task);
        Nudge(task.out[task.head_dim - 1]);
      };
  ExpectFound(table, "attention");
  table = RefKernels();
  table.finish = [](float sum, const float* out, int head_dim, float* result) {
    RefKernels().finish(sum, out, head_dim, result);
    Nudge(result[5]);
  };
  ExpectFound(table, "attention");
}

}  // namespace
}  // namespace vericache::engine
