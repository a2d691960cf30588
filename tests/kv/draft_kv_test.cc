// Goal: a draft KV is its body, then exact rows, then what was drafted; nothing drafted survives
// a rollback (I1).
// Method: random bodies, catch-ups, passes, commits and rollbacks against vectors of rows.

#include "kv/draft_kv.h"

#include <gtest/gtest.h>

#include "tests/support/kv_model.h"
#include "tests/support/property.h"
#include "tests/support/random_kv.h"

namespace vericache::kv {
namespace {

using testing_support::KvContent;
using testing_support::KvModel;
using testing_support::RandomKv;
using testing_support::ReadModel;
using testing_support::WriteModelRow;

// Every other token of [0, end).
PackedKv EveryOther(const FullKv& full, int end) {
  std::vector<int> kept;
  for (int slot = 0; slot < end; slot += 2) kept.push_back(slot);
  std::vector<PackedHead> heads;
  for (int layer = 0; layer < full.Shape().n_layers; ++layer) {
    for (int head = 0; head < full.Shape().n_kv_heads; ++head) {
      const HeadView view(full, layer, head, Position{end});
      heads.push_back(PackHead(view.Gather(kept, kernels::RefKernels()), kernels::KvFormat::kI16));
    }
  }
  return PackedKv(full.Shape(), end, std::move(heads));
}

// Tokens [begin, end) of `from`, appended to the heads of `to`.
void AppendTokens(const KvModel& from, int begin, int end, KvModel& to) {
  for (size_t head = 0; head < from.size(); ++head) {
    for (int i = begin; i < end; ++i) to[head].push_back(from[head][static_cast<size_t>(i)]);
  }
}

// What a DraftKv holds, the obvious way.
struct DraftModel {
  KvModel body;
  KvModel tail;
  KvModel drafted;
  int body_end = 0;

  explicit DraftModel(const KvShape& shape)
      : body(static_cast<size_t>(shape.HeadCount())), tail(body), drafted(body) {}
  int TailCount() const { return static_cast<int>(tail.front().size()); }
  KvModel All() const {
    KvModel all = body;
    AppendTokens(tail, 0, TailCount(), all);
    AppendTokens(drafted, 0, static_cast<int>(drafted.front().size()), all);
    return all;
  }
  void SetBody(const KvModel& full, int end) {
    KvModel kept(full.size());
    const int shift = end - body_end;
    if (shift >= 0 && shift <= TailCount()) AppendTokens(tail, shift, TailCount(), kept);
    tail = kept;
    body = KvModel(full.size());
    for (int token = 0; token < end; token += 2) AppendTokens(full, token, token + 1, body);
    body_end = end;
  }
};

class DraftWalk {
 public:
  DraftWalk(testing_support::Rng& rng, const KvShape& shape)
      : rng_(rng),
        full_(rng, {.shape = shape, .n_tokens = rng.In(0, 400)}, 1500),
        draft_(shape),
        model_(shape) {}

  void Step() {
    switch (rng_.In(0, 4)) {
      case 0:
        return Draft();
      case 1:
        return Rollback();
      case 2:
        return CatchUp();
      case 3:
        return Refresh();
      default:
        return AcceptDrafted();
    }
  }

  void Check() const {
    const int n_tail = model_.TailCount();
    const int n_drafted = static_cast<int>(model_.drafted.front().size());
    ASSERT_EQ(draft_.BodyEnd(), model_.body_end);
    ASSERT_EQ(draft_.TailCount(), n_tail);
    ASSERT_EQ(draft_.DraftedCount(), n_drafted);
    ASSERT_EQ(draft_.TokenCount(), model_.body_end + n_tail + n_drafted);
    ASSERT_EQ(draft_.Bytes(), FullKvBytesPerToken(draft_.Shape()) *
                                  (model_.body.front().size() + static_cast<size_t>(n_tail)));
    ASSERT_EQ(ReadModel(draft_), model_.All());
  }

 private:
  void Draft() {
    const int n_rows = rng_.In(0, rng_.Chance(0.2) ? 300 : 20);
    draft_.Reserve(n_rows);
    KvModel rows(model_.body.size());
    for (int row = 0; row < n_rows; ++row) WriteModelRow(rng_, draft_, row, rows);
    const int n_kept = rng_.In(0, n_rows);
    draft_.Commit(n_kept);
    AppendTokens(rows, 0, n_kept, model_.drafted);
  }
  void Rollback() {
    draft_.Rollback();
    model_.drafted = KvModel(model_.drafted.size());
  }
  void AcceptDrafted() {
    draft_.AcceptDrafted();
    AppendTokens(model_.drafted, 0, static_cast<int>(model_.drafted.front().size()), model_.tail);
    model_.drafted = KvModel(model_.drafted.size());
  }
  void CatchUp() {
    Rollback();
    if (full_->Length() < 1400) full_.Append(rng_, rng_.In(0, 40), KvContent::kNormal);
    if (full_->Length() < draft_.VerifiedCount()) return;
    draft_.CatchUp(*full_);
    AppendTokens(ReadModel(*full_), model_.body_end + model_.TailCount(), full_->Length(),
                 model_.tail);
  }
  void Refresh() {
    Rollback();
    const int end = rng_.In(0, full_->Length());
    draft_.SetBody(EveryOther(*full_, end));
    model_.SetBody(ReadModel(*full_), end);
  }

  testing_support::Rng& rng_;
  RandomKv full_;
  DraftKv draft_;
  DraftModel model_;
};

PROPERTY(DraftKv, FollowsTheModel, 8) {
  DraftWalk walk(rng, {.n_layers = rng.In(1, 2), .n_kv_heads = rng.In(1, 2), .head_dim = 16});
  for (int step = 0; step < 25; ++step) {
    walk.Step();
    ASSERT_NO_FATAL_FAILURE(walk.Check());
  }
}

TEST(DraftKv, ShowsBodyThenCausalTail) {
  testing_support::Rng rng(3);
  const RandomKv full(rng, {.n_tokens = 70});
  DraftKv draft((*full).Shape());
  std::vector<Segment> segments;
  draft.Segments(0, 0, segments);
  ASSERT_EQ(segments.size(), 1u);  // no body yet
  EXPECT_TRUE(segments[0].is_causal);
  EXPECT_EQ(segments[0].n_slots, 0);

  draft.SetBody(EveryOther(*full, 64));
  draft.CatchUp(*full);
  draft.Reserve(2);
  draft.Commit(2);
  segments.clear();
  draft.Segments(0, 0, segments);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_FALSE(segments[0].is_causal);
  EXPECT_EQ(segments[0].n_slots, 32);
  EXPECT_EQ(segments[0].PositionOf(31), Position{62});
  EXPECT_TRUE(segments[1].is_causal);
  EXPECT_EQ(segments[1].n_slots, 8);
  EXPECT_EQ(segments[1].PositionOf(0), Position{64});
  EXPECT_EQ(segments[1].runs[0].n_slots % 64, 0);
}

TEST(DraftKv, GrowsByDoubling) {
  DraftKv draft({.n_layers = 1, .n_kv_heads = 1, .head_dim = 16});
  draft.Reserve(1);
  const size_t first = draft.TailHeldBytes();
  draft.Reserve(256);
  EXPECT_EQ(draft.TailHeldBytes(), first);
  draft.Commit(256);
  draft.Reserve(1);
  EXPECT_EQ(draft.TailHeldBytes(), 2 * first);
  draft.Reserve(257);
  EXPECT_EQ(draft.TailHeldBytes(), 4 * first);
}

TEST(DraftKvDeathTest, KeepsDraftsApartFromWhatIsVerified) {
  testing_support::Rng rng(4);
  const RandomKv full(rng, {.n_tokens = 10});
  DraftKv draft((*full).Shape());
  draft.Reserve(3);
  EXPECT_DEATH(draft.Commit(257), "room for 256");
  draft.Commit(3);
  EXPECT_DEATH(draft.CatchUp(*full), "3 drafted rows");
  EXPECT_DEATH(draft.SetBody(PackedKv()), "3 drafted rows");
  draft.AcceptDrafted();
  draft.Reserve(20);
  draft.Commit(20);
  draft.AcceptDrafted();
  EXPECT_DEATH(draft.CatchUp(*full), "the full KV has 10");
}

}  // namespace
}  // namespace vericache::kv
