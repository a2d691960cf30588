// Goal: methods keep, and blend, what the papers' formulas do, as computed by other hands.
// Method: the vectors of tools/golden/compress_vectors.py (numpy), whose choices are decisive.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

struct Golden {
  kv::KvShape shape;
  int n_tokens = 0;
  int group = 0;
  int n_window = 0;
  std::vector<std::vector<float>> keys, values;  // [head * n_tokens + token]
  std::vector<float> queries;                    // [token, query head, dim]
  struct Kept {
    std::string spec;
    int head = 0;
    std::vector<Position> positions;
    std::vector<float> keys, values;  // [kept, dim]; of methods that do not blend, the source's

    std::string Name() const { return spec.substr(0, spec.find(':')); }
    bool Blends() const { return Name() == "merge" || Name() == "d2o"; }
  };
  std::vector<Kept> kept;
};

std::vector<float> ReadVector(std::istream& line) {
  std::vector<float> x;
  for (int code = 0; line >> code;) x.push_back(static_cast<float>(code) / 64.0f);
  return x;
}

Golden ReadGolden() {
  const auto path =
      std::filesystem::path(__FILE__).parent_path().parent_path() / "golden" / "compress_kept.txt";
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  Golden golden;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "tokens") {
      golden.shape.n_layers = 1;
      line >> golden.n_tokens >> word >> golden.shape.n_kv_heads >> word >> golden.group >> word >>
          golden.shape.head_dim >> word >> golden.n_window;
    } else if (word == "k") {
      golden.keys.push_back(ReadVector(line));
    } else if (word == "v") {
      golden.values.push_back(ReadVector(line));
    } else if (word == "q") {
      const std::vector<float> q = ReadVector(line);
      golden.queries.insert(golden.queries.end(), q.begin(), q.end());
    } else if (word == "method") {
      Golden::Kept& kept = golden.kept.emplace_back();
      line >> kept.spec >> kept.head;
    } else if (word == "kept") {
      Golden::Kept& kept = golden.kept.back();
      for (int position = 0; line >> position;) kept.positions.emplace_back(position);
    } else if (word == "bk" || word == "bv") {
      Golden::Kept& kept = golden.kept.back();
      std::vector<float>& blended = word == "bk" ? kept.keys : kept.values;
      for (int x = 0; line >> x;) blended.push_back(static_cast<float>(x) / 1000.0f);
    }
  }
  return golden;
}

// Methods that do not blend leave keys and values as they are: the file has them already.
Golden::Kept WithVectors(const Golden& golden, Golden::Kept kept) {
  if (kept.Blends()) return kept;
  EXPECT_TRUE(kept.keys.empty() && kept.values.empty()) << kept.spec;
  for (const Position position : kept.positions) {
    const auto row = static_cast<size_t>(kept.head * golden.n_tokens + position.value);
    kept.keys.insert(kept.keys.end(), golden.keys[row].begin(), golden.keys[row].end());
    kept.values.insert(kept.values.end(), golden.values[row].begin(), golden.values[row].end());
  }
  return kept;
}

Hints HintsOf(const Golden& golden) {
  Hints hints;
  hints.window = {.n_layers = 1,
                  .n_heads = golden.shape.n_kv_heads * golden.group,
                  .head_dim = golden.shape.head_dim,
                  .positions = {},
                  .q = {golden.queries}};
  for (int i = golden.n_tokens - golden.n_window; i < golden.n_tokens; ++i) {
    hints.window.positions.emplace_back(i);
  }
  return hints;
}

void ExpectVectors(const kv::HeadSlots& got, const Golden::Kept& want) {
  const auto dims = static_cast<size_t>(got.head_dim);
  ASSERT_EQ(want.keys.size(), static_cast<size_t>(got.Count()) * dims) << want.spec;
  ASSERT_EQ(want.values.size(), want.keys.size()) << want.spec;
  std::vector<float> key(dims);
  std::vector<float> value(dims);
  for (int slot = 0; slot < got.Count(); ++slot) {
    got.Key(slot, key.data());
    got.Value(slot, value.data());
    for (size_t dim = 0; dim < dims; ++dim) {
      const size_t at = static_cast<size_t>(slot) * dims + dim;
      ASSERT_NEAR(key[dim], want.keys[at], 1e-3) << want.spec << " slot " << slot;
      ASSERT_NEAR(value[dim], want.values[at], 1e-3) << want.spec << " slot " << slot;
    }
  }
}

TEST(Golden, MethodsKeepWhatTheFormulasKeep) {
  const Golden golden = ReadGolden();
  testing_support::Rng rng(1);
  testing_support::RandomKv source(rng, {.shape = golden.shape}, golden.n_tokens);
  ASSERT_TRUE(source->Reserve(golden.n_tokens).has_value());
  ASSERT_EQ(golden.keys.size(),
            static_cast<size_t>(golden.shape.n_kv_heads) * static_cast<size_t>(golden.n_tokens));
  for (int head = 0; head < golden.shape.n_kv_heads; ++head) {
    for (int token = 0; token < golden.n_tokens; ++token) {
      const auto row = static_cast<size_t>(head * golden.n_tokens + token);
      testing_support::WriteRow(source->NewRow(0, head, token), golden.keys[row],
                                golden.values[row]);
    }
  }
  source->Commit(golden.n_tokens);
  const Hints hints = HintsOf(golden);
  const Job job{.source = &*source, .hints = &hints, .end = Position{golden.n_tokens}};
  std::multiset<std::string> names;
  for (const Golden::Kept& kept : golden.kept) {
    names.insert(kept.Name());
    const kv::PackedKv packed = testing_support::Compress(kept.spec, job);
    ASSERT_EQ(packed.Head(0, kept.head).positions, kept.positions)
        << kept.spec << " head " << kept.head;
    ExpectVectors(testing_support::SlotsOf(packed, 0, kept.head, golden.n_tokens),
                  WithVectors(golden, kept));
    if (HasFatalFailure()) return;
  }
  // Every method that chooses or blends by a formula of its paper, in both heads.
  const std::multiset<std::string> expected = {
      "d2o",   "d2o",   "expected", "expected", "h2o",    "h2o",    "keydiff", "keydiff",
      "knorm", "knorm", "merge",    "merge",    "snapkv", "snapkv", "tova",    "tova"};
  EXPECT_EQ(names, expected);
}

}  // namespace
}  // namespace vericache::compress
