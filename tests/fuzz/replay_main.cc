// fuzz_NAME FOLDER: runs the target's seeds, mutations of them, and the files of FOLDER, of which
// there must be some; one named refused_* must be.
// fuzz_NAME --write FOLDER: writes the seeds there, for libFuzzer to start from.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/fuzz_target.h"

namespace {

namespace fs = std::filesystem;
using vericache::fuzz::RunOne;

constexpr int kMutations = 300;  // of each seed
constexpr uint64_t kExtremes[] = {0,           1,          0x7f,       0xff,     0xffff,
                                  0x7fffffff,  0x80000000, 0xffffffff, 1u << 20, uint64_t{1} << 42,
                                  ~uint64_t{0}};

bool Run(const std::string& input) {
  return RunOne({reinterpret_cast<const uint8_t*>(input.data()), input.size()});
}

// Flips a bit, puts an extreme number, cuts, doubles a stretch, or removes one; mostly at the
// front, where headers are.
std::string Mutate(std::string bytes, std::mt19937_64& random) {
  if (bytes.empty()) return bytes;
  const size_t reach = random() % 4 == 0 ? bytes.size() : std::min(bytes.size(), size_t{8192});
  const size_t at = random() % reach;
  const size_t n = std::min<size_t>(1 + random() % 64, bytes.size() - at);
  switch (random() % 5) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
      break;
    case 1: {
      const uint64_t value = kExtremes[random() % std::size(kExtremes)];
      const size_t n_bytes = std::min<size_t>(size_t{1} << (random() % 4), bytes.size() - at);
      for (size_t i = 0; i < n_bytes; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
      break;
    }
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.insert(at, bytes.substr(at, n));
      break;
    default:
      bytes.erase(at, n);
  }
  return bytes;
}

int WriteSeeds(const fs::path& folder) {
  fs::create_directories(folder);
  int n = 0;
  for (const std::string& seed : vericache::fuzz::Seeds()) {
    std::ofstream(folder / ("seed" + std::to_string(n++)), std::ios::binary) << seed;
  }
  return 0;
}

// How many files there are; 0 if there is no such folder.
int RunFolder(const fs::path& folder) {
  int n = 0;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const bool is_taken = Run({std::istreambuf_iterator<char>(file), {}});
    if (is_taken && entry.path().filename().string().starts_with("refused_")) {
      std::fprintf(stderr, "taken: %s\n", entry.path().c_str());
      std::exit(1);
    }
    ++n;
  }
  return n;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--write") return WriteSeeds(argv[2]);
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER | --write FOLDER\n", argv[0]);
    return 2;
  }
  const int n_kept = RunFolder(argv[1]);
  if (n_kept == 0) {
    std::fprintf(stderr, "there are no inputs in %s\n", argv[1]);
    return 1;
  }
  int n = n_kept;
  for (const std::string& seed : vericache::fuzz::Seeds()) {
    std::mt19937_64 random(7);
    if (!Run(seed)) {
      std::fprintf(stderr, "a seed is refused: %s\n", seed.substr(0, 100).c_str());
      return 1;
    }
    for (int i = 0; i < kMutations; ++i) Run(Mutate(seed, random));
    n += kMutations + 1;
  }
  std::printf("%d inputs\n", n);
  return 0;
}
