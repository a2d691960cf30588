// Goal: slots come back as they went in, and floats are encoded by the definition.
// Method: codes against the scalar kernels; a value that is not finite.

#include "kv/head_slots.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/kv_model.h"
#include "tests/support/property.h"

namespace vericache::kv {
namespace {

using testing_support::AnyRow;
using testing_support::ModelRow;

PROPERTY(HeadSlots, KeepSlotsBitForBit, 10) {
  const int head_dim = rng.OneOf({16, 80});
  HeadSlots slots(head_dim);
  std::vector<ModelRow> rows;
  for (int i = 0; i < rng.In(1, 50); ++i) {
    rows.push_back(AnyRow(rng, head_dim));
    slots.Append({.key = rows.back().key.data(),
                  .value = rows.back().value.data(),
                  .key_step = rows.back().key_step,
                  .value_step = rows.back().value_step},
                 i + 1, Position{3 * i});
  }
  ASSERT_EQ(slots.Count(), static_cast<int>(rows.size()));
  for (int i = 0; i < slots.Count(); ++i) {
    const ModelRow& row = rows[static_cast<size_t>(i)];
    const I16Slot at = slots.At(i);
    EXPECT_TRUE(std::equal(row.key.begin(), row.key.end(), at.key));
    EXPECT_TRUE(std::equal(row.value.begin(), row.value.end(), at.value));
    EXPECT_EQ(at.key_step, row.key_step);
    EXPECT_EQ(at.value_step, row.value_step);
    EXPECT_EQ(slots.degrees[static_cast<size_t>(i)], i + 1);
    EXPECT_EQ(slots.positions[static_cast<size_t>(i)], Position{3 * i});
    std::vector<float> key(row.key.size());
    std::vector<float> value(row.key.size());
    slots.Key(i, key.data());
    slots.Value(i, value.data());
    for (size_t dim = 0; dim < key.size(); ++dim) {
      EXPECT_EQ(key[dim], static_cast<float>(row.key[dim]) * row.key_step);
      EXPECT_EQ(value[dim], static_cast<float>(row.value[dim]) * row.value_step);
    }
  }
}

PROPERTY(HeadSlots, EncodeByTheDefinition, 10) {
  std::vector<float> key(64);
  std::vector<float> value(64);
  for (float& x : key) x = rng.Normal();
  for (float& x : value) x = rng.Normal();
  HeadSlots slots(64);
  slots.Encode(kernels::RefKernels(), {.key = key.data(), .value = value.data()}, 5, Position{2});
  std::vector<int16_t> codes(64);
  bool is_finite = true;
  EXPECT_EQ(slots.key_steps[0],
            kernels::RefKernels().encode_key(key.data(), 64, codes.data(), &is_finite));
  EXPECT_EQ(slots.key_codes, codes);
  EXPECT_EQ(slots.value_steps[0],
            kernels::RefKernels().encode_value(value.data(), 64, codes.data(), &is_finite));
  EXPECT_EQ(slots.value_codes, codes);
}

TEST(HeadSlots, EncodeWhatIsNotFiniteAsZero) {
  std::vector<float> key(16, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> value(16, std::numeric_limits<float>::infinity());
  HeadSlots slots(16);
  slots.Encode(kernels::RefKernels(), {.key = key.data(), .value = value.data()}, 1, Position{0});
  slots.Key(0, key.data());
  slots.Value(0, value.data());
  EXPECT_EQ(key, std::vector<float>(16, 0.0f));
  EXPECT_EQ(value, std::vector<float>(16, 0.0f));
}

}  // namespace
}  // namespace vericache::kv
