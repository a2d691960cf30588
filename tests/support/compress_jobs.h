// Jobs for compressors on random tensors: source, hints, team, and comparisons of what comes out.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "compress/compressor.h"
#include "compress/registry.h"
#include "kv/head_view.h"
#include "tests/support/random_kv.h"

namespace vericache::testing_support {

struct JobOptions {
  KvOptions kv;
  int group = 1;      // query heads per KV head
  int n_window = 64;  // newest tokens whose queries are known
};

// Geometry and content of every kind, small enough to compress thousands of times.
inline JobOptions AnyJob(Rng& rng) {
  const int n_tokens = rng.Chance(0.2) ? rng.In(1, 8) : rng.In(1, 700);
  return {.kv = {.shape = AnyShape(rng), .n_tokens = n_tokens, .content = AnyContent(rng)},
          .group = rng.In(1, 3),
          .n_window = rng.In(1, 64)};
}

// Owns what a compress::Job points at.
class RandomJob {
 public:
  RandomJob(Rng& rng, const JobOptions& options) : source_(rng, options.kv) {
    const kv::KvShape& shape = options.kv.shape;
    compress::WindowQueries& window = hints_.window;
    window.n_layers = shape.n_layers;
    window.n_heads = shape.n_kv_heads * options.group;
    window.head_dim = shape.head_dim;
    const int n_tokens = options.kv.n_tokens;
    for (int i = std::max(0, n_tokens - options.n_window); i < n_tokens; ++i) {
      window.positions.emplace_back(i);
    }
    const size_t per_layer = window.positions.size() * static_cast<size_t>(window.n_heads) *
                             static_cast<size_t>(window.head_dim);
    for (int layer = 0; layer < shape.n_layers; ++layer) {
      std::vector<float>& q = window.q.emplace_back(per_layer);
      for (float& x : q) x = rng.Normal();
    }
  }

  // Tokens [0, end), or all of them, with the fastest kernels there are.
  compress::Job At(int end) const {
    return {.source = &*source_,
            .hints = &hints_,
            .end = Position{end},
            .kernels = kernels::AvailableKernels().back()};
  }
  compress::Job All() const { return At(source_->Length()); }
  const kv::FullKv& Full() const { return *source_; }
  const compress::Hints& Hints() const { return hints_; }

 private:
  RandomKv source_;
  compress::Hints hints_;
};

inline std::unique_ptr<compress::Compressor> Make(const std::string& spec) {
  auto compressor = compress::MakeCompressor(spec);
  EXPECT_TRUE(compressor.has_value()) << compressor.error().message;
  return std::move(*compressor);
}

inline kv::PackedKv Compress(const std::string& spec, const compress::Job& job, int n_threads = 1) {
  ThreadTeam team(n_threads);
  auto packed = Make(spec)->Compress(job, team);
  EXPECT_TRUE(packed.has_value()) << spec;
  return std::move(*packed);
}

// The same slots in the same bytes.
inline testing::AssertionResult SamePacked(const kv::PackedKv& a, const kv::PackedKv& b) {
  if (a.TokenCount() != b.TokenCount() || a.Shape() != b.Shape()) {
    return testing::AssertionFailure() << "another shape";
  }
  for (int layer = 0; layer < a.Shape().n_layers; ++layer) {
    for (int head = 0; head < a.Shape().n_kv_heads; ++head) {
      const kv::PackedHead& x = a.Head(layer, head);
      const kv::PackedHead& y = b.Head(layer, head);
      if (x.format == y.format && x.positions == y.positions && x.degrees == y.degrees &&
          x.memory.size() == y.memory.size() &&
          (x.memory.size() == 0 ||
           std::memcmp(x.memory.data(), y.memory.data(), x.memory.size()) == 0)) {
        continue;
      }
      return testing::AssertionFailure() << "layer " << layer << " head " << head << " differ";
    }
  }
  return testing::AssertionSuccess();
}

// The slots of one head of a source, by the definition.
inline kv::HeadSlots SlotsOf(const kv::KvSource& source, int layer, int head, int end) {
  return kv::HeadView(source, layer, head, Position{end}).GatherAll(kernels::RefKernels());
}

// Head `head` of `packed` holds exactly the slots `kept` of the full KV, bit for bit.
inline testing::AssertionResult HoldsSlots(const kv::PackedKv& packed, const kv::FullKv& full,
                                           std::pair<int, int> layer_and_head,
                                           const std::vector<int>& kept) {
  const auto [layer, head] = layer_and_head;
  const kv::HeadSlots got = SlotsOf(packed, layer, head, packed.TokenCount());
  const kv::HeadSlots want =
      kv::HeadView(full, layer, head, Position{full.Length()}).Gather(kept, kernels::RefKernels());
  if (got.positions != want.positions) {
    return testing::AssertionFailure()
           << got.Count() << " slots, wanted " << want.Count() << ", or others";
  }
  if (got.key_codes != want.key_codes || got.value_codes != want.value_codes ||
      got.key_steps != want.key_steps || got.value_steps != want.value_steps ||
      got.degrees != want.degrees) {
    return testing::AssertionFailure() << "other bits";
  }
  return testing::AssertionSuccess();
}

}  // namespace vericache::testing_support
