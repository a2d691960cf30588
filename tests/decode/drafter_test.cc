// Goal: bodies end where they may, jobs say what to read, drafts begin exact and end without a
// trace.
// Method: a compressor that records its jobs, a full KV of random content.

#include "decode/drafter.h"

#include <gtest/gtest.h>

#include "tests/support/make_sampler.h"
#include "tests/support/random_kv.h"
#include "tests/support/scripted_session.h"

namespace vericache::decode {
namespace {

using testing_support::RecordingCompressor;

constexpr kv::KvShape kShape{.n_layers = 2, .n_kv_heads = 1, .head_dim = 32};

struct Fixture {
  explicit Fixture(const compress::Traits& traits, const TailPolicy& tail = {})
      : pool(kShape, size_t{16} << 20),
        full(pool),
        drafter({.shape = kShape,
                 .queries = {.n_layers = 2, .n_heads = 3, .head_dim = 32},
                 .compressor = std::make_unique<RecordingCompressor>(traits, &calls),
                 .tail = tail,
                 .seed = 5,
                 .kernels = &kernels::RefKernels()}) {}

  void Grow(int n_tokens) {
    ASSERT_TRUE(full.Reserve(n_tokens).has_value());
    full.Commit(n_tokens - full.Length());
  }
  void Compress() {
    const compress::Job job = drafter.BeginCompression(&full);
    drafter.EndCompression(*drafter.GetCompressor().Compress(job, team));
  }

  kv::BlockPool pool;
  kv::FullKv full;
  std::vector<RecordingCompressor::Call> calls;
  ThreadTeam team{1};
  Drafter drafter;
};

TEST(Drafter, BodiesLeaveRecentTokensAndEndAtTheGrain) {
  Fixture fine({.name = "recording"});
  EXPECT_EQ(fine.drafter.BodyEndFor(0), 0);
  EXPECT_EQ(fine.drafter.BodyEndFor(127), 0);
  EXPECT_EQ(fine.drafter.BodyEndFor(128), 64);
  EXPECT_EQ(fine.drafter.BodyEndFor(1000), 896);
  Fixture coarse({.name = "recording", .body_grain = 512});
  EXPECT_EQ(coarse.drafter.BodyEndFor(575), 0);
  EXPECT_EQ(coarse.drafter.BodyEndFor(576), 512);
  EXPECT_EQ(coarse.drafter.CompressionInterval(), 512);
}

TEST(Drafter, CompressesFirstAtOnceThenAfterAnInterval) {
  Fixture fixture({.name = "recording"}, {.n_recent = 64, .interval = 128});
  EXPECT_FALSE(fixture.drafter.NeedsCompression(127));
  EXPECT_TRUE(fixture.drafter.NeedsCompression(128));
  fixture.Grow(600);
  fixture.Compress();
  ASSERT_EQ(fixture.calls.size(), 1u);
  EXPECT_EQ(fixture.calls[0].end, 512);
  EXPECT_EQ(fixture.drafter.Kv().BodyEnd(), 512);
  EXPECT_FALSE(fixture.drafter.NeedsCompression(703));
  EXPECT_TRUE(fixture.drafter.NeedsCompression(704));
  fixture.Grow(704);
  fixture.Compress();
  EXPECT_EQ(fixture.calls[1].end, 640);
  EXPECT_EQ(fixture.calls[1].round, 1);
}

TEST(Drafter, AJobHoldsWhatTheMethodNeeds) {
  Fixture fixture({.name = "recording",
                   .needs = compress::Needs::kWindowQueries,
                   .n_window = 16,
                   .is_query_agnostic = false});
  model::QueryTap* tap = fixture.drafter.Tap();
  ASSERT_NE(tap, nullptr);
  fixture.Grow(200);
  tap->BeginPass(Position{0}, 200);
  for (int layer = 0; layer < 2; ++layer) {
    for (int head = 0; head < 3; ++head) {
      for (Position p{0}; p.value < 200; ++p) {
        if (!tap->Wants(p)) continue;
        const std::vector<float> q(32, static_cast<float>(layer * 10000 + head * 1000 + p.value));
        tap->Store(layer, head, p, q.data());
      }
    }
  }
  const compress::Job job = fixture.drafter.BeginCompression(&fixture.full);
  EXPECT_EQ(job.source, &fixture.full);
  EXPECT_EQ(job.end, Position{128});
  EXPECT_EQ(job.seed, 5u);
  EXPECT_EQ(job.kernels, &kernels::RefKernels());
  const compress::WindowQueries& window = job.hints->window;
  ASSERT_EQ(window.positions.size(), 16u);
  EXPECT_EQ(window.positions.front(), Position{184});
  EXPECT_EQ(window.positions.back(), Position{199});
  ASSERT_EQ(window.q.size(), 2u);
  ASSERT_EQ(window.q[1].size(), 16u * 3 * 32);
  EXPECT_EQ(window.q[1][(5 * 3 + 2) * 32], 10000.0f + 2000 + 189);
}

TEST(Drafter, NothingIsTappedThatIsNotNeeded) {
  Fixture fixture({.name = "recording"});
  EXPECT_EQ(fixture.drafter.Tap(), nullptr);
}

TEST(Drafter, ADraftBeginsExactAndLeavesNoTrace) {
  Fixture fixture({.name = "recording"});
  fixture.Grow(50);
  const Sampler sampler = testing_support::MakeSampler({}, 4);
  fixture.drafter.Begin(
      {.full = &fixture.full, .committed = &sampler, .pending = TokenId{1}, .n_tokens = 2});
  EXPECT_EQ(fixture.drafter.Kv().VerifiedCount(), 50);
  const std::vector<float> logits = {0, 0, 1, 0};
  const std::vector<uint8_t> is_finite = {1};
  const model::GroupLogits row{
      .n_rows = 1, .n_vocab = 4, .data = logits.data(), .is_finite = is_finite};
  EXPECT_EQ(fixture.drafter.NextRows().tokens[0], TokenId{1});
  EXPECT_EQ(fixture.drafter.NextRows().first_position, Position{50});
  fixture.drafter.Consume(row);
  EXPECT_FALSE(fixture.drafter.IsDone());
  EXPECT_EQ(fixture.drafter.NextRows().tokens[0], TokenId{2});
  EXPECT_EQ(fixture.drafter.NextRows().first_position, Position{51});
  fixture.drafter.Consume(row);
  EXPECT_TRUE(fixture.drafter.IsDone());
  EXPECT_EQ(fixture.drafter.Tokens().size(), 2u);
  fixture.drafter.End();
  EXPECT_TRUE(fixture.drafter.Tokens().empty());
  EXPECT_EQ(fixture.drafter.Kv().DraftedCount(), 0);
  EXPECT_EQ(fixture.drafter.Kv().TokenCount(), 50);
}

// Rows of suggested tokens: what they choose is drafted up to the first difference, and only rows
// of drafted tokens stay.
TEST(Drafter, DraftsWhatItAgreesWithOfASuggestion) {
  Fixture fixture({.name = "recording"});
  fixture.Grow(50);
  const Sampler sampler = testing_support::MakeSampler({}, 4);
  fixture.drafter.Begin(
      {.full = &fixture.full, .committed = &sampler, .pending = TokenId{1}, .n_tokens = 6});
  const auto consume = [&](const std::vector<int>& chosen, std::vector<uint8_t> is_finite) {
    std::vector<float> logits(4 * chosen.size());
    for (size_t i = 0; i < chosen.size(); ++i) logits[4 * i + static_cast<size_t>(chosen[i])] = 1;
    fixture.drafter.Consume({.n_rows = static_cast<int>(chosen.size()),
                             .n_vocab = 4,
                             .data = logits.data(),
                             .is_finite = is_finite});
  };
  const auto drafted = [&] {
    return std::vector<TokenId>(fixture.drafter.Tokens().begin(), fixture.drafter.Tokens().end());
  };
  fixture.drafter.Suggest({TokenId{2}, TokenId{3}, TokenId{0}});
  EXPECT_EQ(fixture.drafter.RowCount(), 4);
  EXPECT_EQ(fixture.drafter.NextRows().tokens.size(), 4u);
  consume({2, 1, 0, 0}, {1, 1, 1, 1});  // 2 as suggested, then another
  EXPECT_EQ(drafted(), (std::vector<TokenId>{TokenId{2}, TokenId{1}}));
  EXPECT_EQ(fixture.drafter.Kv().TokenCount(), 52);
  EXPECT_EQ(fixture.drafter.WantedCount(), 4);
  EXPECT_EQ(fixture.drafter.RowCount(), 1);  // a suggestion serves one pass
  fixture.drafter.Suggest({TokenId{3}, TokenId{3}});
  EXPECT_EQ(fixture.drafter.NextRows().tokens[0], TokenId{1});
  consume({3, 3, 0}, {1, 0, 1});  // the second row went wrong
  EXPECT_EQ(drafted().back(), TokenId{3});
  EXPECT_EQ(drafted().size(), 3u);
  EXPECT_TRUE(fixture.drafter.IsDone());
  EXPECT_EQ(fixture.drafter.Kv().TokenCount(), 53);
}

}  // namespace
}  // namespace vericache::decode
