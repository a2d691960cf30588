// Goal: CentroidKV is the algorithm of its paper with our fill-ins: the same slots, degrees and
// bits as a naive implementation, over a whole life of rounds; its budget holds.
// Method: the naive implementation below, quadratic and literal; r of 0 and 1, odd chunks,
// degrees of millions; a growing sequence folded into a draft KV again and again. Cases: Q9.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kv/draft_kv.h"
#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::JobOptions;
using testing_support::KvContent;
using testing_support::RandomJob;
using testing_support::RandomKv;
using testing_support::SlotsOf;

struct CentroidCase {
  double keep = 0.5;
  int n_sinks = 4;
  int n_recent = 64;
  int chunk = 64;
  double r = 0.25;
  double dr = 0.025;
  double rmin = 0.1;
  bool has_halves = false;
  bool is_of_middle = false;
  bool has_degrees = true;

  std::string Spec() const {
    return fmt::format(
        "centroid:keep={},sinks={},recent={},chunk={},r={},dr={},rmin={},split={},of={},degree={}",
        keep, n_sinks, n_recent, chunk, r, dr, rmin, has_halves ? "halves" : "alternate",
        is_of_middle ? "middle" : "a", has_degrees ? "on" : "off");
  }
  int Budget(int n_tokens) const {
    return std::max(static_cast<int>(keep * n_tokens), std::min(n_tokens, n_sinks + n_recent));
  }
};

CentroidCase AnyCase(testing_support::Rng& rng) {
  return {.keep = rng.OneOf({0.05, 0.25, 0.5, 0.75, 1.0}),
          .n_sinks = rng.OneOf({0, 1, 4}),
          .n_recent = rng.OneOf({0, 3, 64}),
          .chunk = rng.OneOf({2, 3, 7, 16, 63, 64, 200}),
          .r = rng.OneOf({0.0, 0.1, 0.25, 0.5, 1.0}),
          .dr = rng.OneOf({0.0, 0.025, 0.3}),
          .rmin = rng.OneOf({0.0, 0.1, 1.0}),
          .has_halves = rng.Chance(0.3),
          .is_of_middle = rng.Chance(0.3)};
}

// One slot, as the naive implementation keeps it.
struct NaiveSlot {
  kv::HeadSlots slot;  // of one
  int32_t degree;
  int position;
};

double CosineOf(const NaiveSlot& a, const NaiveSlot& b) {
  int64_t dot = 0;
  int64_t aa = 0;
  int64_t bb = 0;
  for (int dim = 0; dim < a.slot.head_dim; ++dim) {
    dot += a.slot.KeyCodes(0)[dim] * b.slot.KeyCodes(0)[dim];
    aa += a.slot.KeyCodes(0)[dim] * a.slot.KeyCodes(0)[dim];
    bb += b.slot.KeyCodes(0)[dim] * b.slot.KeyCodes(0)[dim];
  }
  if (aa == 0 || bb == 0) return 0.0;
  // In this order: equal cosines must tie here exactly where they tie there.
  return static_cast<double>(dot) * (1.0 / std::sqrt(static_cast<double>(bb))) *
         (1.0 / std::sqrt(static_cast<double>(aa)));
}

struct NaivePair {
  size_t a;
  size_t b;
  double cosine;
};

std::vector<NaivePair> NaivePairs(const std::vector<NaiveSlot>& slots, const CentroidCase& c) {
  std::vector<NaivePair> pairs;
  const auto begin = static_cast<size_t>(std::min<int>(c.n_sinks, static_cast<int>(slots.size())));
  const size_t end = slots.size() - std::min(slots.size(), static_cast<size_t>(c.n_recent));
  for (size_t a = begin; a < end; ++a) {
    const auto chunk = static_cast<size_t>(c.chunk);
    const size_t chunk_begin = begin + (a - begin) / chunk * chunk;
    const size_t n_in_chunk = std::min(chunk_begin + chunk, end) - chunk_begin;
    const auto is_b = [&](size_t slot) {
      const size_t offset = slot - chunk_begin;
      return c.has_halves ? 2 * offset >= n_in_chunk + n_in_chunk % 2 : offset % 2 != 0;
    };
    if (is_b(a)) continue;
    NaivePair best{.a = a, .b = a, .cosine = -2.0};
    for (size_t b = chunk_begin; b < std::min(chunk_begin + chunk, end); ++b) {
      if (!is_b(b)) continue;
      const double cosine = CosineOf(slots[a], slots[b]);
      if (cosine > best.cosine) best = {.a = a, .b = b, .cosine = cosine};
    }
    if (best.b != a) pairs.push_back(best);
  }
  return pairs;
}

// b and everything that joins it, in slot order.
NaiveSlot CentroidOf(const std::vector<NaiveSlot>& slots, const std::vector<size_t>& members,
                     size_t b) {
  const int head_dim = slots[b].slot.head_dim;
  const auto dims = static_cast<size_t>(head_dim);
  std::vector<double> key(dims, 0.0);
  std::vector<double> value(dims, 0.0);
  int32_t degree = 0;
  for (const size_t m : members) {
    const kv::HeadSlots& slot = slots[m].slot;
    for (size_t dim = 0; dim < dims; ++dim) {
      key[dim] += double{slot.key_steps[0]} * slots[m].degree * slot.KeyCodes(0)[dim];
      value[dim] += double{slot.value_steps[0]} * slots[m].degree * slot.ValueCodes(0)[dim];
    }
    degree += slots[m].degree;
  }
  std::vector<float> key_f32;
  std::vector<float> value_f32;
  for (size_t dim = 0; dim < dims; ++dim) {
    key_f32.push_back(static_cast<float>(key[dim] / degree));
    value_f32.push_back(static_cast<float>(value[dim] / degree));
  }
  NaiveSlot centroid{
      .slot = kv::HeadSlots(head_dim), .degree = degree, .position = slots[b].position};
  centroid.slot.Encode(kernels::RefKernels(), {.key = key_f32.data(), .value = value_f32.data()},
                       degree, Position{centroid.position});
  return centroid;
}

std::vector<NaiveSlot> NaiveMerge(const std::vector<NaiveSlot>& slots,
                                  const std::vector<NaivePair>& pairs) {
  std::vector<NaiveSlot> merged;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    std::vector<size_t> members = {slot};
    bool is_gone = false;
    for (const NaivePair& pair : pairs) {
      is_gone = is_gone || pair.a == slot;
      if (pair.b == slot) members.push_back(pair.a);
    }
    std::sort(members.begin(), members.end());
    if (is_gone) continue;
    merged.push_back(members.size() == 1 ? slots[slot] : CentroidOf(slots, members, slot));
  }
  return merged;
}

std::vector<NaiveSlot> NaiveCentroid(const kv::HeadSlots& source, const CentroidCase& c,
                                     int n_tokens, int first_round) {
  std::vector<NaiveSlot> slots;
  for (int i = 0; i < source.Count(); ++i) {
    const auto at = static_cast<size_t>(i);
    slots.push_back({.slot = kv::HeadSlots(source.head_dim),
                     .degree = source.degrees[at],
                     .position = source.positions[at].value});
    slots.back().slot.Append(source.At(i), 1, Position{0});
  }
  for (int round = first_round; static_cast<int>(slots.size()) > c.Budget(n_tokens); ++round) {
    std::vector<NaivePair> pairs = NaivePairs(slots, c);
    const double share = std::max(c.rmin, c.r - round * c.dr);
    const auto n_excess = slots.size() - static_cast<size_t>(c.Budget(n_tokens));
    const double n_counted = c.is_of_middle
                                 ? static_cast<double>(slots.size()) - c.n_sinks - c.n_recent
                                 : static_cast<double>(pairs.size());
    const auto n_merged =
        std::min({n_excess, pairs.size(), static_cast<size_t>(std::ceil(share * n_counted))});
    if (n_merged == 0) break;
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const NaivePair& x, const NaivePair& y) { return x.cosine > y.cosine; });
    pairs.resize(n_merged);
    slots = NaiveMerge(slots, pairs);
  }
  return slots;
}

void ExpectSlots(const kv::PackedKv& packed, int layer, int head,
                 const std::vector<NaiveSlot>& expected) {
  const kv::HeadSlots got = SlotsOf(packed, layer, head, packed.TokenCount());
  ASSERT_EQ(got.Count(), static_cast<int>(expected.size()));
  for (int i = 0; i < got.Count(); ++i) {
    const NaiveSlot& want = expected[static_cast<size_t>(i)];
    const auto at = static_cast<size_t>(i);
    ASSERT_EQ(got.positions[at].value, want.position) << "slot " << i;
    ASSERT_EQ(got.degrees[at], want.degree) << "slot " << i;
    ASSERT_TRUE(std::equal(got.KeyCodes(i), got.KeyCodes(i) + got.head_dim, want.slot.KeyCodes(0)));
    ASSERT_TRUE(
        std::equal(got.ValueCodes(i), got.ValueCodes(i) + got.head_dim, want.slot.ValueCodes(0)));
    ASSERT_EQ(got.key_steps[at], want.slot.key_steps[0]);
    ASSERT_EQ(got.value_steps[at], want.slot.value_steps[0]);
  }
}

PROPERTY(Centroid, EqualsTheNaiveImplementation, 40) {
  JobOptions options = testing_support::AnyJob(rng);
  options.kv.shape.head_dim = 16;
  options.kv.n_tokens = std::min(options.kv.n_tokens, 260);
  const RandomJob random(rng, options);
  const CentroidCase c = AnyCase(rng);
  Job job = random.At(rng.In(0, options.kv.n_tokens));
  job.round = rng.In(0, 5);
  const kv::PackedKv packed = Compress(c.Spec(), job, rng.In(1, 2));
  const int head = rng.In(0, options.kv.shape.n_kv_heads - 1);
  const auto expected =
      NaiveCentroid(SlotsOf(random.Full(), 0, head, job.end.value), c, job.end.value, job.round);
  ASSERT_NO_FATAL_FAILURE(ExpectSlots(packed, 0, head, expected)) << c.Spec();
}

// A request's life: prefill, then generated tokens folded into the body again and again.
PROPERTY(Centroid, HoldsItsBudgetWhileTheSequenceGrows, 6) {
  CentroidCase c = AnyCase(rng);
  c.rmin = std::max(c.rmin, 0.1);  // a share that falls to 0 ends merging
  const kv::KvShape shape{.n_layers = 1, .n_kv_heads = 2, .head_dim = 16};
  RandomKv full(rng, {.shape = shape, .n_tokens = 128, .content = KvContent::kSmooth}, 1000);
  kv::DraftKv draft(shape);
  for (int round = 0; round < 6; ++round) {
    draft.CatchUp(*full);
    const Position end{full->Length() / 64 * 64};
    const kv::HeadSlots before = SlotsOf(draft, 0, 1, end.value);
    kv::PackedKv body =
        Compress(c.Spec(), {.source = &draft, .end = end, .round = round}, rng.In(1, 2));
    ASSERT_NO_FATAL_FAILURE(ExpectSlots(body, 0, 1, NaiveCentroid(before, c, end.value, round)));
    // A lone slot between the protected ones has no partner.
    const bool is_only_protected = c.Budget(end.value) == c.n_sinks + c.n_recent;
    ASSERT_LE(body.Head(0, 1).n_slots, c.Budget(end.value) + (is_only_protected ? 1 : 0));
    int64_t mass = 0;
    for (const int32_t degree : body.Head(0, 1).degrees) mass += degree;
    ASSERT_EQ(mass, end.value);  // nothing is dropped, only merged
    draft.SetBody(std::move(body));
    full.Append(rng, rng.In(60, 140), KvContent::kSmooth);
  }
}

TEST(Centroid, MergesDegreesOfMillions) {
  testing_support::Rng rng(4);
  const RandomKv full(rng, {.n_tokens = 16});
  kv::HeadSlots slots = SlotsOf(*full, 0, 0, 16);
  int token = 0;
  for (int i = 0; i < 16; ++i) {
    slots.degrees[static_cast<size_t>(i)] = i % 2 == 0 ? 100'000'000 : 1;
    slots.positions[static_cast<size_t>(i)] = Position{token};
    token += slots.degrees[static_cast<size_t>(i)];
  }
  std::vector<kv::PackedHead> heads;
  heads.push_back(kv::PackHead(slots, kernels::KvFormat::kI16));
  const kv::PackedKv source(full->Shape(), token, std::move(heads));
  const CentroidCase c{.keep = 1e-9, .n_sinks = 0, .n_recent = 0, .chunk = 5, .r = 1.0};
  const kv::PackedKv packed = Compress(c.Spec(), {.source = &source, .end = Position{token}});
  ASSERT_NO_FATAL_FAILURE(ExpectSlots(packed, 0, 0, NaiveCentroid(slots, c, token, 0)));
  ASSERT_EQ(packed.Head(0, 0).n_slots, 1);
  EXPECT_EQ(packed.Head(0, 0).degrees[0], 800'000'008);
}

TEST(Centroid, ForgetsDegreesIfAskedTo) {
  testing_support::Rng rng(8);
  const RandomJob job(rng, {.kv = {.n_tokens = 300}});
  const kv::PackedKv with = Compress("centroid:keep=0.25", job.All());
  const kv::PackedKv without = Compress("centroid:keep=0.25,degree=off", job.All());
  EXPECT_EQ(without.Head(0, 0).positions, with.Head(0, 0).positions);
  EXPECT_EQ(SlotsOf(without, 0, 0, 300).key_codes, SlotsOf(with, 0, 0, 300).key_codes);
  EXPECT_FALSE(without.Head(0, 0).HasWeights());
  EXPECT_TRUE(with.Head(0, 0).HasWeights());
}

TEST(Centroid, MergesNothingWithoutAShare) {
  testing_support::Rng rng(5);
  const RandomJob job(rng, {.kv = {.n_tokens = 300}});
  const kv::PackedKv packed = Compress("centroid:keep=0.25,r=0,rmin=0", job.All());
  EXPECT_EQ(packed.Head(0, 0).n_slots, 300);
  EXPECT_EQ(Compress("centroid:keep=0.25,r=0", job.All()).Head(0, 0).n_slots, 75);
}

TEST(Centroid, KeepsSinksAndRecentBitForBit) {
  testing_support::Rng rng(6);
  const RandomJob job(rng, {.kv = {.n_tokens = 300}});
  const kv::HeadSlots before = SlotsOf(job.Full(), 0, 0, 300);
  const kv::PackedKv packed = Compress("centroid:keep=0.3", job.All());
  const kv::HeadSlots after = SlotsOf(packed, 0, 0, 300);
  ASSERT_EQ(after.Count(), 90);
  const auto same = [&](int new_slot, int old_slot) {
    const auto at = static_cast<size_t>(new_slot);
    return after.degrees[at] == 1 && after.positions[at].value == old_slot &&
           std::equal(after.KeyCodes(new_slot), after.KeyCodes(new_slot) + 16,
                      before.KeyCodes(old_slot)) &&
           std::equal(after.ValueCodes(new_slot), after.ValueCodes(new_slot) + 16,
                      before.ValueCodes(old_slot));
  };
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same(i, i)) << i;
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(same(89 - i, 299 - i)) << i;
}

TEST(Centroid, MergesTheMostSimilarFirst) {
  // Sixteen slots in eight pairs of equal keys: half the budget, no error at all.
  testing_support::Rng rng(7);
  const kv::KvShape shape{.n_layers = 1, .n_kv_heads = 1, .head_dim = 16};
  RandomKv full(rng, {.shape = shape}, 256);
  ASSERT_TRUE(full->Reserve(16).has_value());
  std::vector<float> key(16);
  const std::vector<float> value(16, 1.0f);
  for (int i = 0; i < 16; ++i) {
    if (i % 2 == 0) testing_support::NextVector(rng, KvContent::kNormal, key);
    testing_support::WriteRow(full->NewRow(0, 0, i), key, value);
  }
  full->Commit(16);
  const kv::PackedKv packed = Compress("centroid:keep=0.5,sinks=0,recent=0,r=0.25",
                                       {.source = &*full, .end = Position{16}});
  EXPECT_EQ(packed.Head(0, 0).degrees, std::vector<int32_t>(8, 2));
}

}  // namespace
}  // namespace vericache::compress
