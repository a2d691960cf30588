// Goal: SnapKV keeps the window and the slots that binary64 ranks highest.
// Method: a naive ranking written here; where it calls two slots equal within the error of
// codes, either may be kept.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tests/support/naive_attention.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::JobOptions;
using testing_support::Make;
using testing_support::RandomJob;

std::vector<double> Pool(const std::vector<double>& scores, int width) {
  std::vector<double> pooled;
  const int n = static_cast<int>(scores.size());
  for (int i = 0; i < n; ++i) {
    double sum = 0.0;
    for (int j = i - width / 2; j <= i + width / 2; ++j) {
      if (j >= 0 && j < n) sum += scores[static_cast<size_t>(j)];
    }
    pooled.push_back(sum / width);
  }
  return pooled;
}

struct SnapCase {
  double keep;
  int window;
  int kernel;
  int end;
};

void ExpectTopKept(const RandomJob& job, const SnapCase& snap, const kv::PackedKv& packed,
                   int head) {
  const compress::WindowQueries& window = job.Hints().window;
  const auto n_queries = std::min(window.positions.size(), static_cast<size_t>(snap.window));
  const int window_begin = window.positions[window.positions.size() - n_queries].value;
  const int n_scored = std::min(snap.end, window_begin);
  const kv::HeadSlots slots =
      testing_support::SlotsOf(job.Full(), 0, head, window.positions.back().value + 1);
  std::vector<double> scores = testing_support::NaiveWindowScores(
      slots, window, 0, head, job.Full().Shape().n_kv_heads, snap.window);
  scores.resize(static_cast<size_t>(n_scored));
  const std::vector<double> pooled = Pool(scores, snap.kernel);

  std::set<int> kept;
  for (const Position position : packed.Head(0, head).positions) kept.insert(position.value);
  const int n_slots = std::max(static_cast<int>(snap.keep * snap.end), 0);
  ASSERT_EQ(static_cast<int>(kept.size()), n_slots);
  const int n_in_window = std::min(snap.end - n_scored, n_slots);
  for (int i = 0; i < n_in_window; ++i) ASSERT_TRUE(kept.count(snap.end - 1 - i)) << i;

  const int n_top = n_slots - n_in_window;
  if (n_top == 0 || n_top >= n_scored) return;
  std::vector<double> sorted = pooled;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double threshold = sorted[static_cast<size_t>(n_top) - 1];
  for (int slot = 0; slot < n_scored; ++slot) {
    const double score = pooled[static_cast<size_t>(slot)];
    if (score > threshold * (1 + 2e-3)) {
      EXPECT_TRUE(kept.count(slot)) << slot;
    }
    if (score < threshold * (1 - 2e-3)) {
      EXPECT_FALSE(kept.count(slot)) << slot;
    }
  }
}

PROPERTY(SnapKv, KeepsWhatTheWindowAttendsTo, 10) {
  JobOptions options = testing_support::AnyJob(rng);
  options.kv.content =
      rng.OneOf({testing_support::KvContent::kNormal, testing_support::KvContent::kSmooth});
  options.kv.n_tokens = rng.In(2, 700);
  const RandomJob job(rng, options);
  const SnapCase snap{
      .keep = rng.OneOf({0.1, 0.25, 0.5}),
      .window = rng.OneOf({1, 16, 64}),
      .kernel = rng.OneOf({1, 5, 7}),
      .end = rng.Chance(0.5) ? options.kv.n_tokens : rng.In(1, options.kv.n_tokens)};
  const kv::PackedKv packed = Compress(
      fmt::format("snapkv:keep={},window={},kernel={}", snap.keep, snap.window, snap.kernel),
      job.At(snap.end), rng.In(1, 2));
  for (int head = 0; head < packed.Shape().n_kv_heads; ++head) {
    ExpectTopKept(job, snap, packed, head);
  }
}

TEST(SnapKv, FindsANeedle) {
  // One key points where all window queries look; its neighbours come along through pooling.
  testing_support::Rng rng(11);
  const RandomJob job(rng, {.kv = {.n_tokens = 400}, .n_window = 8});
  compress::Hints hints = job.Hints();
  std::vector<float> needle(16);
  testing_support::SlotsOf(job.Full(), 0, 0, 400).Key(123, needle.data());
  for (size_t i = 0; i < hints.window.q[0].size(); ++i) {
    hints.window.q[0][i] = 10 * needle[i % 16];
  }
  Job looking = job.All();
  looking.hints = &hints;
  const kv::PackedKv packed = Compress("snapkv:keep=0.0325,window=8,kernel=5", looking);
  std::vector<int> kept;
  for (const Position position : packed.Head(0, 0).positions) kept.push_back(position.value);
  EXPECT_EQ(kept,
            (std::vector<int>{121, 122, 123, 124, 125, 392, 393, 394, 395, 396, 397, 398, 399}));
}

TEST(SnapKv, SaysThatItEncodesOneQuestion) {
  const Traits traits = Make("snapkv:window=32")->GetTraits();
  EXPECT_EQ(traits.needs, Needs::kWindowQueries);
  EXPECT_EQ(traits.n_window, 32);
  EXPECT_FALSE(traits.is_query_agnostic);
}

TEST(SnapKvDeathTest, NeedsQueries) {
  testing_support::Rng rng(1);
  const RandomJob random(rng, {.kv = {.n_tokens = 10}});
  Job job = random.All();
  job.hints = nullptr;
  EXPECT_DEATH(Compress("snapkv", job), "no window queries");
}

}  // namespace
}  // namespace vericache::compress
