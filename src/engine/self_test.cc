#include "engine/self_test.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "decode/noise.h"
#include "kv/packed_kv.h"

namespace vericache::engine {
namespace {

using kernels::KernelTable;
using kernels::KvFormat;
using kernels::WeightType;

// Seeded numbers; the values do not matter as long as they are of all signs and sizes.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  uint64_t Bits() { return decode::Mix64(state_ += 0x9e3779b97f4a7c15u); }
  float Next() { return static_cast<float>(static_cast<int64_t>(Bits())) * 0x1p-62f; }  // [-2, 2)
  std::vector<float> Vector(int n) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) value = Next();
    return values;
  }

 private:
  uint64_t state_;
};

bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct TypeInfo {
  WeightType type;
  std::string_view name;
  int block_bytes;
  std::vector<int> half_offsets;  // F16 fields of a block: random bytes could make infinities
};

const std::vector<TypeInfo>& QuantizedTypes() {
  static const std::vector<TypeInfo> types = {
      {WeightType::kQ8_0, "Q8_0", 34, {0}},    {WeightType::kQ4_0, "Q4_0", 18, {0}},
      {WeightType::kQ4_1, "Q4_1", 20, {0, 2}}, {WeightType::kQ5_0, "Q5_0", 22, {0}},
      {WeightType::kQ5_1, "Q5_1", 24, {0, 2}}, {WeightType::kQ4K, "Q4_K", 144, {0, 2}},
      {WeightType::kQ5K, "Q5_K", 176, {0, 2}}, {WeightType::kQ6K, "Q6_K", 210, {208}},
  };
  return types;
}

std::vector<std::byte> QuantizedRows(const TypeInfo& info, size_t n_bytes, Numbers& numbers) {
  std::vector<std::byte> rows(n_bytes);
  for (std::byte& byte : rows) byte = static_cast<std::byte>(numbers.Bits());
  for (size_t block = 0; block < n_bytes; block += static_cast<size_t>(info.block_bytes)) {
    for (const int offset : info.half_offsets) {
      // Exponents of small numbers: the high byte's exponent bits stay below all ones.
      std::byte& high = rows[block + static_cast<size_t>(offset) + 1];
      high = (high & std::byte{0x83}) | std::byte{0x28};
    }
  }
  return rows;
}

std::vector<std::byte> FloatRows(WeightType type, size_t n_bytes, Numbers& numbers) {
  std::vector<std::byte> rows(n_bytes);
  const size_t width = type == WeightType::kF32 ? 4 : 2;
  for (size_t at = 0; at < n_bytes; at += width) {
    const float value = numbers.Next();
    if (type == WeightType::kF32) {
      std::memcpy(&rows[at], &value, 4);
    } else {  // any bits below infinity will do
      const auto half = static_cast<uint16_t>(numbers.Bits() & 0xbbffu);
      std::memcpy(&rows[at], &half, 2);
    }
  }
  return rows;
}

std::vector<float> Multiply(const KernelTable& table, const kernels::PackedMatrix& w,
                            const std::vector<float>& x, int n_rows) {
  kernels::Activations acts;
  kernels::ShapeActivations(acts, x.data(), n_rows, w.k);
  table.quantize(acts, 0, (w.k + kernels::kActBlock - 1) / kernels::kActBlock);
  std::vector<float> y(static_cast<size_t>(n_rows) * static_cast<size_t>(w.n));
  table.matmul(w, acts, y.data(), static_cast<size_t>(w.n), 0, w.n_panels);
  return y;
}

Status Differs(const KernelTable& chosen, std::string_view operation) {
  return MakeError(ErrorCode::kInternal,
                   "self-test: {} of path {} differs from the definition on this machine; another "
                   "path (--isa ref) may work, answers of this one cannot be trusted",
                   operation, chosen.name);
}

Status TestMatmul(const KernelTable& chosen, const kernels::PackedMatrix& w, std::string_view name,
                  Numbers& numbers) {
  for (const int n_rows : {1, 3, 18}) {
    const std::vector<float> x = numbers.Vector(n_rows * w.k);
    if (!Same(Multiply(chosen, w, x, n_rows), Multiply(kernels::RefKernels(), w, x, n_rows))) {
      return Differs(chosen, name);
    }
  }
  return {};
}

Status TestMatmuls(const KernelTable& chosen, Numbers& numbers) {
  constexpr int kColumns = 40;  // not a multiple of a panel
  constexpr int kInputs = 512;
  const auto pack = [](WeightType type, const std::vector<std::byte>& rows) {
    kernels::PackedMatrix w = kernels::ShapePackedMatrix(type, kColumns, kInputs);
    kernels::PackPanels(w, rows.data(), 0, w.n_panels);
    return w;
  };
  const auto n_bytes = [](WeightType type) {
    return kColumns * kernels::GgufRowBytes(type, kInputs);
  };
  for (const TypeInfo& info : QuantizedTypes()) {
    const auto rows = QuantizedRows(info, n_bytes(info.type), numbers);
    VC_RETURN_IF_ERROR(TestMatmul(chosen, pack(info.type, rows), info.name, numbers));
  }
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBf16}) {
    const auto rows = FloatRows(type, n_bytes(type), numbers);
    VC_RETURN_IF_ERROR(TestMatmul(chosen, pack(type, rows), "float matmul", numbers));
  }
  return {};
}

// Everything that works on one row or one head.
std::vector<float> RowOperations(const KernelTable& table, uint64_t seed) {
  constexpr int kLength = 96;
  Numbers numbers(seed);
  std::vector<float> x = numbers.Vector(kLength);
  const std::vector<float> other = numbers.Vector(kLength);
  std::vector<float> result(kLength);
  table.rms_norm(x.data(), other.data(), kLength, 1e-5f, result.data());
  table.rope(result.data(), other.data(), 32, kernels::RopePairs::kAdjacent);
  table.rope(result.data(), other.data(), 32, kernels::RopePairs::kHalves);
  table.silu_mul(result.data(), other.data(), kLength, x.data());
  table.add(result.data(), x.data(), kLength);
  std::vector<int16_t> codes(kLength);
  bool is_finite = true;
  result.push_back(table.encode_key(x.data(), kLength, codes.data(), &is_finite));
  result.insert(result.end(), codes.begin(), codes.end());
  result.push_back(table.encode_value(x.data(), kLength, codes.data(), &is_finite));
  result.insert(result.end(), codes.begin(), codes.end());
  return result;
}

constexpr int kHeadDim = 64;
constexpr int kSlots = 150;

// One chunk, attended twice and merged, as a longer KV would be.
std::vector<float> Attend(const KernelTable& table, const kv::PackedHead& head,
                          const std::vector<float>& q, int n_rows) {
  const kernels::AttentionKernels& attention = table.attention[static_cast<int>(head.format)];
  const auto rows = static_cast<size_t>(n_rows);
  AlignedBuffer queries(attention.query_bytes(n_rows, kHeadDim));
  AlignedBuffer scratch(attention.scratch_bytes(n_rows, kHeadDim));
  attention.pack_queries({.q = q.data(),
                          .token_stride = kHeadDim,
                          .group = 1,
                          .first_row = 0,
                          .n_rows = n_rows,
                          .head_dim = kHeadDim},
                         queries.data());
  std::vector<int32_t> n_visible(rows);
  for (int row = 0; row < n_rows; ++row) {
    n_visible[static_cast<size_t>(row)] = kSlots - n_rows + 1 + row;
  }
  std::vector<float> max(rows);
  std::vector<float> sum(rows);
  std::vector<float> out(rows * kHeadDim);
  attention.chunk({.head_dim = kHeadDim,
                   .n_rows = n_rows,
                   .queries = queries.data(),
                   .runs = {&head.run, 1},
                   .n_visible = n_visible.data(),
                   .scratch = scratch.data(),
                   .max = max.data(),
                   .sum = sum.data(),
                   .out = out.data()});
  std::vector<float> result = max;
  result.insert(result.end(), sum.begin(), sum.end());
  std::vector<float> row_result(kHeadDim);
  for (size_t row = 0; row < rows; ++row) {
    std::vector<float> merged(out.begin() + static_cast<ptrdiff_t>(row * kHeadDim),
                              out.begin() + static_cast<ptrdiff_t>((row + 1) * kHeadDim));
    float merged_max = max[row];
    float merged_sum = sum[row];
    table.merge(merged_max, merged_sum, merged.data(), max[row] + 0.3f, sum[row],
                out.data() + row * kHeadDim, kHeadDim);
    table.finish(merged_sum, merged.data(), kHeadDim, row_result.data());
    result.insert(result.end(), row_result.begin(), row_result.end());
  }
  return result;
}

Status TestAttention(const KernelTable& chosen, Numbers& numbers) {
  kv::HeadSlots slots(kHeadDim);
  for (int i = 0; i < kSlots; ++i) {
    const std::vector<float> key = numbers.Vector(kHeadDim);
    const std::vector<float> value = numbers.Vector(kHeadDim);
    slots.Encode(kernels::RefKernels(), {.key = key.data(), .value = value.data()}, 1 + i % 3,
                 Position{3 * i});
  }
  for (const KvFormat format : {KvFormat::kI16, KvFormat::kQ8, KvFormat::kQ4, KvFormat::kQ2}) {
    const kv::PackedHead head = kv::PackHead(slots, format);
    for (const int n_rows : {1, 7}) {
      const std::vector<float> q = numbers.Vector(n_rows * kHeadDim);
      if (!Same(Attend(chosen, head, q, n_rows), Attend(kernels::RefKernels(), head, q, n_rows))) {
        return Differs(chosen, "attention");
      }
    }
  }
  return {};
}

}  // namespace

Status SelfTest(const kernels::KernelTable& chosen) {
  Numbers numbers(1);
  if (!Same(RowOperations(chosen, 2), RowOperations(kernels::RefKernels(), 2))) {
    return Differs(chosen, "a row operation");
  }
  VC_RETURN_IF_ERROR(TestMatmuls(chosen, numbers));
  return TestAttention(chosen, numbers);
}

}  // namespace vericache::engine
