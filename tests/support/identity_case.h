// The grid of the identity tests: what may vary without changing a bit of an answer.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "compress/registry.h"
#include "tests/support/solo_run.h"

namespace vericache::testing_support {

inline constexpr int kChunk = 512;  // softmax chunk, and the grain of an exact body

struct IdentityCase {
  model::Architecture architecture = model::Architecture::kLlama;
  std::string spec;
  decode::DrafterKind drafter = decode::DrafterKind::kKv;
  std::optional<int> draft_len;  // nullopt: auto
  int n_prompt = 1;
  int n_threads = 1;
  int prefill_chunk = kChunk;
  uint64_t seed = 1;
  float temperature = 0;
  decode::TailPolicy tail{};
  int max_tokens = 28;

  std::string Describe() const {
    return fmt::format(
        "{} {} drafter {} draft {} prompt {} threads {} prefill chunk {} seed {} T {} tail {}+{}",
        model::TraitsOf(architecture).name, spec, static_cast<int>(drafter),
        draft_len ? std::to_string(*draft_len) : "auto", n_prompt, n_threads, prefill_chunk, seed,
        temperature, tail.n_recent, tail.interval);
  }
};

// Every registered method as it comes, the hostile one, variants and chains.
inline std::vector<std::string> IdentitySpecs() {
  std::vector<std::string> specs;
  for (const compress::MethodInfo& method : compress::ListMethods()) {
    specs.emplace_back(method.name);
  }
  for (const char* spec :
       {"hostile", "kivi:bits=8", "kivi:bits=2", "streaming:keep=0.125",
        "snapkv:keep=0.5+kivi:bits=4", "centroid+kivi:bits=4", "centroid+rotated:bits=8"}) {
    specs.emplace_back(spec);
  }
  return specs;
}

// The factors of the grid, as lists of values.
struct IdentityGrid {
  std::vector<model::Architecture> architectures = AllArchitectures();
  std::vector<std::string> specs = IdentitySpecs();
  std::vector<decode::DrafterKind> drafters = {decode::DrafterKind::kKv,
                                               decode::DrafterKind::kBoth};
  std::vector<std::optional<int>> draft_lens = {1, 2, 7, 25, 40, std::nullopt};
  std::vector<int> n_prompts = {1, kChunk - 1, kChunk, kChunk + 1, 3 * kChunk};
  // The slow values of these two once, the quick ones more often.
  std::vector<int> n_threads = {1, 2, 1, 1};
  std::vector<int> prefill_chunks = {kChunk, 1, 32, kChunk};
  std::vector<uint64_t> seeds = {1, 2};
  std::vector<float> temperatures = {0.0f, 0.8f};
  // The usual tail, and one that is compressed often.
  std::vector<decode::TailPolicy> tails = {{}, {.n_recent = 8, .interval = 8}};

  std::vector<int> Sizes() const {
    const auto size = [](const auto& values) { return static_cast<int>(values.size()); };
    return {size(architectures), size(specs),     size(drafters),       size(draft_lens),
            size(n_prompts),     size(n_threads), size(prefill_chunks), size(seeds),
            size(temperatures),  size(tails)};
  }

  IdentityCase At(const std::vector<int>& choice) const {
    size_t factor = 0;
    const auto pick = [&](const auto& values) {
      return values[static_cast<size_t>(choice[factor++])];
    };
    IdentityCase c;
    c.architecture = pick(architectures);
    c.spec = pick(specs);
    c.drafter = pick(drafters);
    c.draft_len = pick(draft_lens);
    c.n_prompt = pick(n_prompts);
    c.n_threads = pick(n_threads);
    c.prefill_chunk = pick(prefill_chunks);
    c.seed = pick(seeds);
    c.temperature = pick(temperatures);
    c.tail = pick(tails);
    return c;
  }
};

// Lookups compress nothing: what concerns bodies and tails is left out.
inline IdentityGrid LookupGrid() {
  IdentityGrid grid;
  grid.specs = {"identity"};
  grid.drafters = {decode::DrafterKind::kNgram};
  grid.n_prompts = {1, kChunk - 1, kChunk + 1};
  grid.tails = {{}};
  return grid;
}

// Runs cases against full decoding with one thread and whole chunks, and adds up what happened.
class IdentityRunner {
 public:
  void Run(const IdentityCase& c) {
    SCOPED_TRACE(c.Describe());
    decode::Request request;
    request.prompt = RandomPrompt(c.n_prompt, c.seed);
    request.compressor = c.spec;
    request.drafter = c.drafter;
    request.draft_len = c.draft_len;
    request.sampling = {.temperature = c.temperature, .seed = c.seed * 1000003};
    request.max_tokens = c.max_tokens;
    request.ignore_eos = true;  // random weights end a text at any time
    request.hash_logits = true;
    const TinyModel& tiny = ModelOf(c.architecture);
    const SoloResult drafted =
        RunSolo(tiny, request,
                {.n_threads = c.n_threads, .prefill_chunk = c.prefill_chunk, .tail = c.tail});
    ExpectIdentical(drafted, FullOf(c, request));
    if (c.drafter == decode::DrafterKind::kNgram) {
      n_looked_up += drafted.stats.looked_up;
      n_lookups_kept += drafted.stats.looked_up_kept;
      return;
    }
    n_cases += 1;
    n_accepted += drafted.stats.accepted;
    n_rejected += drafted.stats.drafted - drafted.stats.accepted;
    n_compressions += drafted.stats.n_compressions;
    if (c.spec == "identity") {
      EXPECT_EQ(drafted.stats.accepted, drafted.stats.drafted);
      n_identity_drafted += drafted.stats.drafted;
    }
    if (c.spec == "hostile") n_hostile_drafted += drafted.stats.drafted;
  }

  int n_cases = 0;
  int64_t n_accepted = 0;
  int64_t n_rejected = 0;
  int64_t n_identity_drafted = 0;
  int64_t n_hostile_drafted = 0;
  int64_t n_looked_up = 0;
  int64_t n_lookups_kept = 0;
  int n_compressions = 0;

 private:
  const TinyModel& ModelOf(model::Architecture architecture) {
    std::unique_ptr<TinyModel>& tiny = models_[architecture];
    if (!tiny)
      tiny = std::make_unique<TinyModel>(model::TinyModelSpec{.architecture = architecture});
    return *tiny;
  }

  const SoloResult& FullOf(const IdentityCase& c, decode::Request request) {
    const auto key =
        std::make_tuple(c.architecture, c.n_prompt, c.seed, c.temperature, c.max_tokens);
    const auto found = full_.find(key);
    if (found != full_.end()) return found->second;
    request.mode = decode::Mode::kFull;
    return full_.emplace(key, RunSolo(ModelOf(c.architecture), request)).first->second;
  }

  std::map<model::Architecture, std::unique_ptr<TinyModel>> models_;
  std::map<std::tuple<model::Architecture, int, uint64_t, float, int>, SoloResult> full_;
};

}  // namespace vericache::testing_support
