// Goal: every head is packed once, from its own slots up to the end, on any number of threads.
// Method: a pack that records what it was given.

#include "compress/per_head.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

PROPERTY(PackHeads, VisitsEveryHeadOnce, 10) {
  const testing_support::RandomJob job(rng, testing_support::AnyJob(rng));
  const int end = rng.In(0, job.Full().Length());
  ThreadTeam team(rng.In(1, 3));
  std::mutex mutex;
  std::set<std::pair<int, int>> seen;
  const kv::PackedKv packed = PackHeads(job.At(end), team, [&](const HeadJob& head) {
    EXPECT_EQ(head.view.Count(), end);
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(seen.insert({head.layer, head.head}).second);
    kv::HeadSlots slots(job.Full().Shape().head_dim);
    return kv::PackHead(slots, kernels::KvFormat::kI16);
  });
  EXPECT_EQ(static_cast<int>(seen.size()), packed.Shape().HeadCount());
  EXPECT_EQ(packed.TokenCount(), end);
}

TEST(PackHeadsDeathTest, RefusesAnEndBehindTheSource) {
  testing_support::Rng rng(1);
  const testing_support::RandomJob job(rng, {.kv = {.n_tokens = 10}});
  ThreadTeam team(1);
  EXPECT_DEATH(PackHeads(job.At(11), team, [](const HeadJob&) { return kv::PackedHead(); }),
               "end 11 of 10 tokens");
}

}  // namespace
}  // namespace vericache::compress
