// Hostile: a body of random keys and values that has nothing to do with the text. For tests.
//
// The second witness (I8): the worst drafter there can be must leave the text as it is. It draws
// everything a body may be: which tokens stay, what they stand for, magnitudes, storage formats.

#include <cmath>
#include <vector>

#include "compress/method.h"
#include "compress/per_head.h"
#include "kv/packed_run.h"

namespace vericache::compress {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

// splitmix64, started from what names the head: the same draw wherever and whenever it runs.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t stream) : state_(seed + kGolden * (stream + 1)) { Next(); }

  uint64_t Next() {
    state_ += kGolden;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n).
  int Below(int n) { return static_cast<int>(Next() % static_cast<uint64_t>(n)); }
  // Uniform in [-1, 1).
  float Signed() { return static_cast<float>(static_cast<int64_t>(Next()) >> 40) * 0x1p-23f; }

 private:
  uint64_t state_;
};

void DrawVector(Draws& draws, std::vector<float>& x) {
  const float magnitude = std::ldexp(1.0f, draws.Below(17) - 8);
  for (float& value : x) value = magnitude * draws.Signed();
}

class Hostile final : public Compressor {
 public:
  explicit Hostile(Parameters& parameters)
      : keep_(parameters.Share("keep", 0.5)),
        seed_(parameters.Int("seed", {.preset = 1, .low = 0, .high = 1 << 30})),
        spec_(parameters.Spec()) {}

  Traits GetTraits() const override { return {.name = "hostile", .is_ragged = true}; }
  std::string Spec() const override { return spec_; }

  // Cost: O(end * d) per head.
  Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const override {
    return PackHeads(job, team, [&](const HeadJob& head) { return Draw(job, head); });
  }

 private:
  kv::PackedHead Draw(const Job& job, const HeadJob& head) const {
    const kv::KvShape& shape = job.source->Shape();
    const uint64_t stream =
        shape.HeadIndex(head.layer, head.head) + (static_cast<uint64_t>(job.round) << 32);
    Draws draws(job.seed ^ static_cast<uint64_t>(seed_), stream);
    kv::RunFormat run{
        .format = static_cast<kernels::KvFormat>(draws.Below(kernels::kKvFormatCount)),
        .head_dim = shape.head_dim};
    if (!run.IsPossible()) run.format = kernels::KvFormat::kI16;
    std::vector<float> key(static_cast<size_t>(shape.head_dim));
    std::vector<float> value(key.size());
    kv::HeadSlots slots(shape.head_dim);
    int n_dropped = 0;  // tokens since the last slot: what the next one may stand for as well
    for (Position position{0}; position < job.end; ++position) {
      if (std::abs(draws.Signed()) >= static_cast<float>(keep_)) {
        ++n_dropped;
        continue;
      }
      DrawVector(draws, key);
      DrawVector(draws, value);
      const int degree = 1 + (draws.Below(2) == 0 ? draws.Below(n_dropped + 1) : 0);
      slots.Encode(*job.kernels, {.key = key.data(), .value = value.data()}, degree, position);
      n_dropped = 0;
    }
    return kv::PackHead(slots, run.format);
  }

  double keep_;
  int seed_;
  std::string spec_;
};

std::unique_ptr<Compressor> MakeHostile(Parameters& parameters) {
  return std::make_unique<Hostile>(parameters);
}

}  // namespace

extern const Method kHostile;
const Method kHostile{.name = "hostile",
                      .summary = "random keys and values, to test that drafts cannot change text",
                      .make = MakeHostile,
                      .is_listed = false};

}  // namespace vericache::compress
