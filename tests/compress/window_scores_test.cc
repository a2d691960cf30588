// Goal: window scores are the attention mass of the formula, the same bits on every path.
// Method: against binary64, over full, merged and drafted sources; every kernel table against
// ref.

#include "compress/window_scores.h"

#include <gtest/gtest.h>

#include "kv/draft_kv.h"
#include "tests/support/naive_attention.h"

namespace vericache::compress {
namespace {

using testing_support::JobOptions;
using testing_support::NaiveWindowScores;
using testing_support::RandomJob;

// The codes of q and k are off by 1/46000 of a norm, and weights multiply that error: mass of a
// thousandth is more than enough room.
void ExpectScores(const Job& job, const WindowJob& window) {
  const kv::HeadSlots slots = testing_support::SlotsOf(
      *job.source, window.layer, window.head, job.hints->window.positions.back().value + 1);
  const std::vector<double> expected =
      NaiveWindowScores(slots, job.hints->window, window.layer, window.head,
                        job.source->Shape().n_kv_heads, window.n_queries);
  const std::vector<float> scores = WindowScores(job, window);
  ASSERT_EQ(scores.size(), expected.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    ASSERT_NEAR(scores[i], expected[i], 1e-3 * expected[i] + 1e-6) << "slot " << i;
  }
  for (const kernels::KernelTable* table : kernels::AvailableKernels()) {
    Job other = job;
    other.kernels = table;
    ASSERT_EQ(WindowScores(other, window), scores) << table->name;
  }
}

JobOptions Normal(testing_support::Rng& rng) {
  JobOptions options = testing_support::AnyJob(rng);
  options.kv.content =
      rng.OneOf({testing_support::KvContent::kNormal, testing_support::KvContent::kSmooth,
                 testing_support::KvContent::kTies});
  return options;
}

PROPERTY(WindowScores, AreTheMassOfTheFormula, 10) {
  const JobOptions options = Normal(rng);
  const RandomJob job(rng, options);
  ExpectScores(job.All(), {.layer = options.kv.shape.n_layers - 1,
                           .head = options.kv.shape.n_kv_heads - 1,
                           .n_queries = rng.In(1, 64)});
}

PROPERTY(WindowScores, CountMergedSlotsByTheirDegree, 5) {
  JobOptions options = Normal(rng);
  options.kv.n_tokens = rng.In(100, 700);
  const RandomJob random(rng, options);
  const kv::PackedKv merged =
      testing_support::Compress("centroid:keep=0.3,recent=8,r=1", random.All());
  Job job = random.All();
  job.source = &merged;
  ExpectScores(job, {.n_queries = 64});
}

PROPERTY(WindowScores, ReadBodyAndTailOfADraft, 5) {
  JobOptions options = Normal(rng);
  options.kv.n_tokens = rng.In(100, 700);
  const RandomJob random(rng, options);
  kv::DraftKv draft(options.kv.shape);
  draft.SetBody(testing_support::Compress("streaming:keep=0.5", random.At(64)));
  draft.CatchUp(random.Full());
  Job job = random.All();
  job.source = &draft;
  ExpectScores(job, {.n_queries = 7});
}

PROPERTY(WindowScores, MeetRotatedSlotsWithRotatedQueries, 5) {
  JobOptions options = Normal(rng);
  options.kv.n_tokens = rng.In(100, 700);
  options.kv.shape.head_dim = 16;
  const RandomJob random(rng, options);
  const kv::PackedKv packed = testing_support::Compress("rotated:bits=8", random.All());
  const kv::PackedKv read = testing_support::Compress("identity", [&] {
    Job job = random.All();
    job.source = &packed;
    return job;
  }());
  Job job = random.All();
  job.source = &packed;
  const std::vector<float> scores = WindowScores(job, {.n_queries = 7});
  job.source = &read;
  const std::vector<float> expected = WindowScores(job, {.n_queries = 7});
  ASSERT_EQ(scores.size(), expected.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    ASSERT_NEAR(scores[i], expected[i], 0.01 * expected[i] + 1e-4) << "slot " << i;
  }
}

TEST(WindowScores, GiveEveryQueryOneUnitOfMass) {
  testing_support::Rng rng(3);
  const RandomJob job(
      rng, {.kv = {.shape = {.n_layers = 1, .n_kv_heads = 2, .head_dim = 64}, .n_tokens = 1100},
            .group = 3});
  double sum = 0.0;
  for (const float score : WindowScores(job.All(), {.head = 1, .n_queries = 10})) sum += score;
  EXPECT_NEAR(sum, 10 * 3, 1e-3);
}

}  // namespace
}  // namespace vericache::compress
