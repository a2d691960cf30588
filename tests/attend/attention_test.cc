// Goal: every row gets the definition's bits, whatever the tasks' shape: by chunk or by row
// block, alone or beside other groups, on any number of threads, over any runs and segments, on
// every instruction set.
// Method: random queries, keys and values; the literal definition as oracle.
#include "attend/attention.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "attend/append.h"
#include "kernels/hadamard.h"
#include "tests/support/literal_attention.h"
#include "tests/support/same_bits.h"
#include "tests/support/segmented_kv.h"

namespace vericache::attend {
namespace {

using testing_support::AttendLiterally;
using testing_support::EncodeLiterally;
using testing_support::LiteralSlot;
using testing_support::SameBits;
using testing_support::SegmentedKv;

using Floats = std::vector<float>;

Floats RandomFloats(size_t n, std::mt19937& random, float scale = 1.0f) {
  std::normal_distribution<float> normal(0.0f, scale);
  Floats x(n);
  for (float& value : x) value = normal(random);
  return x;
}

// One sequence: a KV of segments, and new rows behind them whose K and V are appended too.
class Sequence {
 public:
  Sequence(const HeadShape& shape, const std::vector<int>& n_slots, int n_rows, uint32_t seed)
      : shape_(shape),
        kv_({1, shape.n_kv_heads, shape.head_dim}, n_slots, n_rows),
        n_rows_(n_rows),
        random_(seed) {
    const kernels::KernelTable& ref = kernels::RefKernels();
    slots_.resize(static_cast<size_t>(shape.n_kv_heads));
    for (int head = 0; head < shape.n_kv_heads; ++head) {
      for (size_t s = 0; s < n_slots.size(); ++s) {
        auto& slots = slots_[static_cast<size_t>(head)].emplace_back();
        const bool is_last = s + 1 == n_slots.size();
        for (int i = 0; i < n_slots[s] + (is_last ? n_rows : 0); ++i) {
          const auto n = static_cast<size_t>(shape.head_dim);
          const Floats key = RandomFloats(n, random_, 2.0f);
          const Floats value = RandomFloats(n, random_);
          const kv::RowSlot slot = kv_.SlotAt(0, head, static_cast<int>(s), i);
          EXPECT_TRUE(AppendKey(ref, key.data(), shape.head_dim, slot));
          EXPECT_TRUE(AppendValue(ref, value.data(), shape.head_dim, slot));
          slots.push_back({.key = EncodeLiterally(key.data(), n, false),
                           .value = EncodeLiterally(value.data(), n, true)});
        }
      }
    }
    q_ = RandomFloats(static_cast<size_t>(n_rows * shape.n_heads * shape.head_dim), random_);
  }

  // Slots of the first segment stand for more than one token.
  void AddDegrees() {
    for (int head = 0; head < shape_.n_kv_heads; ++head) {
      auto& slots = slots_[static_cast<size_t>(head)].front();
      for (size_t i = 0; i < slots.size(); ++i) {
        slots[i].bias = static_cast<float>(i % 5) * 0.7f;
        kv_.SetLogWeight(0, head, 0, static_cast<int>(i), slots[i].bias);
      }
    }
  }

  // The first segment's slots are stored rotated; what they stand for stays.
  void RotateFirst() {
    const auto rotated = [&](const testing_support::LiteralVector& vector) {
      Floats x;
      for (const int code : vector.codes) x.push_back(static_cast<float>(code) * vector.step);
      kernels::Rotate(x.data(), shape_.head_dim);
      return x;
    };
    for (int head = 0; head < shape_.n_kv_heads; ++head) {
      const auto& slots = slots_[static_cast<size_t>(head)].front();
      for (size_t i = 0; i < slots.size(); ++i) {
        const kv::RowSlot slot = kv_.SlotAt(0, head, 0, static_cast<int>(i));
        AppendKey(kernels::RefKernels(), rotated(slots[i].key).data(), shape_.head_dim, slot);
        AppendValue(kernels::RefKernels(), rotated(slots[i].value).data(), shape_.head_dim, slot);
      }
    }
    kv_.SetFirstRotated();
  }

  SegmentedKv& Kv() { return kv_; }
  int RowCount() const { return n_rows_; }
  const Floats& Queries() const { return q_; }

  // [rows, n_heads * head_dim]
  Floats Expected() const {
    Floats out;
    const auto head_dim = static_cast<std::ptrdiff_t>(shape_.head_dim);
    for (int row = 0; row < n_rows_; ++row) {
      for (int head = 0; head < shape_.n_heads; ++head) {
        auto segments = slots_[static_cast<size_t>(head / shape_.Group())];
        segments.back().resize(segments.back().size() - static_cast<size_t>(n_rows_ - row - 1));
        const auto begin = q_.begin() + (row * shape_.n_heads + head) * head_dim;
        const Floats result = AttendLiterally(Floats(begin, begin + head_dim), segments);
        out.insert(out.end(), result.begin(), result.end());
      }
    }
    return out;
  }

 private:
  HeadShape shape_;
  SegmentedKv kv_;
  int n_rows_;
  std::mt19937 random_;
  Floats q_;
  std::vector<std::vector<std::vector<LiteralSlot>>> slots_;  // [kv head][segment][slot]
};

// All sequences' rows in one pass.
Floats RunAttention(const kernels::KernelTable& kernels, const HeadShape& shape, int n_threads,
                    const std::vector<Sequence*>& sequences) {
  Floats q;
  std::vector<Group> groups;
  int n_rows = 0;
  for (Sequence* sequence : sequences) {
    groups.push_back({.kv = &sequence->Kv(), .first_row = n_rows, .n_rows = sequence->RowCount()});
    q.insert(q.end(), sequence->Queries().begin(), sequence->Queries().end());
    n_rows += sequence->RowCount();
  }
  Floats out(q.size(), NAN);
  ThreadTeam team(n_threads);
  Attention attention(kernels, shape, n_threads);
  attention.BeginPass(groups, 1);
  attention.DealLayer(0);
  team.Run([&](Member& member) {
    attention.RunTasks(member, 0, q.data(), out.data());
    member.Barrier();
    const Member::Range heads = member.Share(shape.n_heads);
    attention.MergePartials(0, heads.begin, heads.end, out.data());
  });
  return out;
}

TEST(Attention, EqualsTheLiteralDefinitionOverSegmentsOfEveryLength) {
  const HeadShape shape{.n_heads = 6, .n_kv_heads = 2, .head_dim = 32};
  for (const std::vector<int>& n_slots :
       {std::vector<int>{0}, {1}, {63}, {511}, {512}, {1100}, {0, 3}, {100, 40}, {576, 64, 500}}) {
    Sequence sequence(shape, n_slots, 3, 11);
    if (n_slots.size() > 1) sequence.AddDegrees();
    EXPECT_TRUE(
        SameBits(RunAttention(kernels::RefKernels(), shape, 1, {&sequence}), sequence.Expected()))
        << n_slots.front() << " slots";
  }
}

TEST(Attention, GivesTheSameBitsByChunkAndByRowBlock) {
  const HeadShape shape{.n_heads = 6, .n_kv_heads = 2, .head_dim = 32};
  // 3 query rows per token: the last ones are cut by row block.
  for (const int n_rows : {1, 5, 21, 22, 40, 70}) {
    Sequence sequence(shape, {700}, n_rows, 12);
    const Floats expected = sequence.Expected();
    for (const int n_threads : {1, 2, 3}) {
      EXPECT_TRUE(
          SameBits(RunAttention(kernels::RefKernels(), shape, n_threads, {&sequence}), expected))
          << n_rows << " rows, " << n_threads << " threads";
    }
  }
}

TEST(Attention, GivesTheSameBitsOnEveryInstructionSet) {
  for (const HeadShape& shape : {HeadShape{.n_heads = 9, .n_kv_heads = 3, .head_dim = 64},
                                 HeadShape{.n_heads = 4, .n_kv_heads = 4, .head_dim = 128}}) {
    for (const int n_rows : {1, 2, 30}) {
      Sequence sequence(shape, {300, 650}, n_rows, 13);
      sequence.AddDegrees();
      const Floats expected = sequence.Expected();
      for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
        EXPECT_TRUE(SameBits(RunAttention(*kernels, shape, 2, {&sequence}), expected))
            << kernels->name << ", " << n_rows << " rows";
      }
    }
  }
}

TEST(Attention, GivesAGroupTheSameBitsBesideOthers) {
  const HeadShape shape{.n_heads = 6, .n_kv_heads = 2, .head_dim = 32};
  Sequence prefill(shape, {600}, 50, 14);  // by row block
  Sequence decode(shape, {1000}, 1, 15);   // by chunk
  Sequence draft(shape, {128, 70}, 2, 16);
  Sequence fresh(shape, {0}, 7, 17);
  const std::vector<Sequence*> all = {&decode, &prefill, &draft, &fresh};
  Floats expected;
  for (const Sequence* sequence : all) {
    const Floats part = sequence->Expected();
    expected.insert(expected.end(), part.begin(), part.end());
  }
  for (const int n_threads : {1, 2, 3}) {
    EXPECT_TRUE(SameBits(RunAttention(kernels::RefKernels(), shape, n_threads, all), expected))
        << n_threads << " threads";
  }
}

// Rotating slots and queries changes nothing but how they round.
TEST(Attention, ReadsRotatedSlotsAsWhatTheyStandFor) {
  const HeadShape shape{.n_heads = 6, .n_kv_heads = 2, .head_dim = 32};
  for (const int n_rows : {1, 4, 40}) {
    Sequence sequence(shape, {700, 90}, n_rows, 19);
    sequence.AddDegrees();
    const Floats expected = sequence.Expected();
    sequence.RotateFirst();
    const Floats alone = RunAttention(kernels::RefKernels(), shape, 1, {&sequence});
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(alone[i], expected[i], 2e-3) << i;
    for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
      for (const int n_threads : {1, 2, 3}) {
        ASSERT_TRUE(SameBits(RunAttention(*kernels, shape, n_threads, {&sequence}), alone))
            << kernels->name << ", " << n_rows << " rows, " << n_threads << " threads";
      }
    }
  }
}

TEST(Attention, DoesNotSeeWhereRunsEnd) {
  const HeadShape shape{.n_heads = 2, .n_kv_heads = 1, .head_dim = 64};
  for (const int n_slots_per_run : {64, 192, 256, 512}) {
    Sequence sequence(shape, {900, 300}, 2, 18);
    sequence.AddDegrees();
    const Floats expected = sequence.Expected();
    sequence.Kv().SplitRuns(0, n_slots_per_run);
    sequence.Kv().SplitRuns(1, n_slots_per_run);
    for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
      EXPECT_TRUE(SameBits(RunAttention(*kernels, shape, 2, {&sequence}), expected))
          << kernels->name << ", runs of " << n_slots_per_run;
    }
  }
}

}  // namespace
}  // namespace vericache::attend
