// Goal: every registered method and chain keeps the contract: a pure function (I6) that keeps I7
// and its budget on whatever it is given. A method joins by being registered.
// Method: random geometry and content (ties, constants, zeros, huge norms, one head, one slot),
// repeated on other threads and kernels, over full and draft sources.

#include "compress/compressor.h"

#include <gtest/gtest.h>

#include "kv/draft_kv.h"
#include "tests/support/compress_jobs.h"
#include "tests/support/kv_model.h"

namespace vericache::compress {
namespace {

using testing_support::AnyJob;
using testing_support::Compress;
using testing_support::JobOptions;
using testing_support::Make;
using testing_support::RandomJob;
using testing_support::SamePacked;

// Every listed method as it is, some with other parameters, the hostile one, and chains.
std::vector<std::string> AllSpecs() {
  std::vector<std::string> specs;
  for (const MethodInfo& method : ListMethods()) specs.emplace_back(method.name);
  specs.insert(specs.end(), {"hostile",
                             "kivi:bits=8",
                             "kivi:bits=2",
                             "streaming:keep=0.01,sinks=0",
                             "snapkv:keep=0.05,window=3,kernel=1",
                             "centroid:keep=0.1,recent=0,sinks=0,chunk=5,r=1",
                             "snapkv:keep=0.25+kivi:bits=4",
                             "centroid:keep=0.5+kivi:bits=4",
                             "streaming+centroid:keep=0.25,recent=4",
                             "hostile+kivi:bits=8",
                             "centroid:budget=layer",
                             "streaming:budget=layer",
                             "h2o:keep=0.3,window=5,recent=0",
                             "tova:keep=0.05,budget=layer",
                             "knorm:keep=0.3,budget=head+tova",
                             "centroid+keydiff:budget=head",
                             "merge:keep=0.3,base=snapkv,reach=2,budget=head",
                             "merge+d2o:keep=0.25",
                             "d2o:budget=layer",
                             "centroid:split=random,of=middle,degree=off",
                             "rotated:bits=2",
                             "snapkv:keep=0.25+rotated:bits=8"});
  for (const char* name : {"snapkv", "h2o", "expected", "knorm", "keydiff"}) {
    for (const char* budget : {"layer", "head"}) {
      specs.push_back(fmt::format("{}:keep=0.25,budget={}+kivi:bits=4", name, budget));
    }
  }
  return specs;
}

void ExpectI7(const kv::PackedKv& packed, const Job& job, const std::string& spec) {
  ASSERT_EQ(packed.TokenCount(), job.end.value) << spec;
  ASSERT_EQ(packed.Shape(), job.source->Shape()) << spec;
  for (int layer = 0; layer < packed.Shape().n_layers; ++layer) {
    for (int head = 0; head < packed.Shape().n_kv_heads; ++head) {
      const kv::PackedHead& slots = packed.Head(layer, head);
      int64_t mass = 0;
      for (size_t i = 0; i < slots.positions.size(); ++i) {
        ASSERT_TRUE(i == 0 || slots.positions[i - 1] < slots.positions[i]) << spec;
        ASSERT_LT(slots.positions[i], job.end) << spec;
        ASSERT_GE(slots.degrees[i], 1) << spec;
        mass += slots.degrees[i];
      }
      ASSERT_LE(mass, job.end.value) << spec;
      if (!spec.starts_with("hostile")) {  // which invents its slots
        ASSERT_LE(slots.n_slots, kv::HeadView(*job.source, layer, head, job.end).Count()) << spec;
      }
    }
  }
}

// The same job once more, on other threads, from another instance, with other kernels.
void ExpectPure(const kv::PackedKv& packed, const Job& job, const std::string& spec) {
  ASSERT_TRUE(SamePacked(packed, Compress(spec, job, 2))) << spec;
  for (const kernels::KernelTable* table : kernels::AvailableKernels()) {
    Job other = job;
    other.kernels = table;
    ASSERT_TRUE(SamePacked(packed, Compress(spec, other))) << spec << " " << table->name;
  }
}

PROPERTY(Compressor, IsAPureFunctionThatKeepsItsInvariants, 6) {
  JobOptions options = AnyJob(rng);
  options.kv.n_tokens = std::min(options.kv.n_tokens, 400);  // the scalar kernels are slow
  const RandomJob random(rng, options);
  const auto before = testing_support::ReadModel(random.Full());
  Job job = random.At(rng.In(0, options.kv.n_tokens));
  job.round = rng.In(0, 3);
  job.seed = rng.Next();
  for (const std::string& spec : AllSpecs()) {
    const kv::PackedKv packed = Compress(spec, job);
    ASSERT_NO_FATAL_FAILURE(ExpectI7(packed, job, spec));
    ASSERT_NO_FATAL_FAILURE(ExpectPure(packed, job, spec));
  }
  EXPECT_EQ(testing_support::ReadModel(random.Full()), before);  // the source is only read
}

// What a lossy session does: compress its own draft, fold the tail in, go on.
PROPERTY(Compressor, TakesItsOwnDraftAsSource, 6) {
  JobOptions options = AnyJob(rng);
  options.kv.n_tokens = rng.In(130, 500);
  const RandomJob random(rng, options);
  for (const std::string& spec : AllSpecs()) {
    kv::DraftKv draft(options.kv.shape);
    draft.SetBody(Compress(spec, random.At(64)));
    draft.CatchUp(random.Full());
    for (int round = 1; round < 3; ++round) {
      Job job = random.At(64 * (round + 1) * options.kv.n_tokens / 512 / 64 * 64 + 64);
      job.source = &draft;
      job.round = round;
      kv::PackedKv body = Compress(spec, job);
      ASSERT_NO_FATAL_FAILURE(ExpectI7(body, job, spec));
      draft.SetBody(std::move(body));
    }
  }
}

PROPERTY(Compressor, HoldsItsShareOfTheTokens, 10) {
  JobOptions options = AnyJob(rng);
  options.kv.n_tokens = rng.In(200, 700);
  const RandomJob random(rng, options);
  const double keep = rng.OneOf({0.125, 0.25, 0.5});
  const int n_kept = static_cast<int>(keep * options.kv.n_tokens);
  for (const char* form :
       {"streaming:keep={}", "snapkv:keep={}", "centroid:keep={},recent=8", "h2o:keep={}",
        "tova:keep={}", "expected:keep={}", "knorm:keep={}", "keydiff:keep={}", "merge:keep={}",
        "d2o:keep={}", "snapkv:keep={}+kivi:bits=4",
        "streaming:keep=1+centroid:keep={},recent=8"}) {
    const std::string spec = fmt::format(fmt::runtime(form), keep);
    const kv::PackedKv packed = Compress(spec, random.All());
    EXPECT_EQ(packed.Head(0, 0).n_slots, n_kept) << spec;
  }
}

TEST(Compressor, CompressesNothingToNothing) {
  testing_support::Rng rng(1);
  const RandomJob random(rng, {.kv = {.n_tokens = 5}});
  for (const std::string& spec : AllSpecs()) {
    const kv::PackedKv packed = Compress(spec, random.At(0));
    EXPECT_EQ(packed.TokenCount(), 0) << spec;
    EXPECT_EQ(packed.Bytes(), 0u) << spec;
  }
}

TEST(Compressor, HasTraitsThatMakeSense) {
  for (const std::string& spec : AllSpecs()) {
    const Traits traits = Make(spec)->GetTraits();
    EXPECT_EQ(traits.body_grain % kernels::kSubBlockSlots, 0) << spec;
    EXPECT_EQ(traits.needs == Needs::kWindowQueries, traits.n_window > 0) << spec;
    EXPECT_TRUE(!traits.is_exact || traits.body_grain % kernels::kChunkSlots == 0) << spec;
    EXPECT_GE(traits.version, 1) << spec;
  }
}

}  // namespace
}  // namespace vericache::compress
