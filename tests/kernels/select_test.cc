// Which path runs.
//
// Goal: the reference is always there, "auto" takes the fastest, a name takes that path or says why
// not.
// Method: the list that this machine offers; the compiler's own view of the CPU as second opinion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/kernels.h"

namespace vericache::kernels {
namespace {

bool IsAvailable(std::string_view name) {
  const std::vector<const KernelTable*> available = AvailableKernels();
  return std::any_of(available.begin(), available.end(),
                     [&](const KernelTable* table) { return table->name == name; });
}

TEST(SelectKernels, ReferenceComesFirstAndAutoTakesTheLast) {
  const std::vector<const KernelTable*> available = AvailableKernels();
  EXPECT_EQ(available.front(), &RefKernels());
  EXPECT_EQ(SelectKernels("auto").value(), available.back());
}

TEST(SelectKernels, GivesEveryAvailablePathByItsName) {
  for (const KernelTable* table : AvailableKernels()) {
    EXPECT_EQ(SelectKernels(table->name).value(), table);
  }
}

TEST(SelectKernels, AgreesWithTheCompilerAboutThisCpu) {
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  EXPECT_EQ(IsAvailable("avx2"), has_avx2);
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0 &&
                          __builtin_cpu_supports("avx512dq") != 0;
  EXPECT_EQ(IsAvailable("avx512"), has_avx512);
  EXPECT_EQ(IsAvailable("avx512vnni"), has_avx512 && __builtin_cpu_supports("avx512vnni") != 0);
}

TEST(SelectKernels, SaysWhatExistsWhenANameIsUnknown) {
  const auto result = SelectKernels("sse9");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message,
              testing::HasSubstr("'sse9': expected one of auto, ref, avx2, avx512, avx512vnni"));
}

TEST(SelectKernels, RefusesWhatThisMachineCannotRun) {
  for (const std::string_view name : {"avx2", "avx512", "avx512vnni"}) {
    if (IsAvailable(name)) continue;
    const auto result = SelectKernels(name);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(result.error().message, testing::HasSubstr(std::string(name)));
  }
}

TEST(SelectKernels, TablesHaveNoHoles) {
  for (const KernelTable* table : AvailableKernels()) {
    EXPECT_TRUE(table->quantize && table->matmul && table->rms_norm && table->rope) << table->name;
    EXPECT_TRUE(table->silu_mul && table->add && table->merge && table->finish) << table->name;
    EXPECT_TRUE(table->encode_key && table->encode_value) << table->name;
  }
}

}  // namespace
}  // namespace vericache::kernels
