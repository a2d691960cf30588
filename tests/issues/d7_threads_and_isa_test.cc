// D7. In another engine the number of threads, or the machine, changed the text
// (ollama/ollama#586). Right: the same bits for any number of threads and every instruction set,
// plain and drafted.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/solo_run.h"

namespace vericache {
namespace {

using testing_support::Answer;
using testing_support::Ask;

TEST(D7ThreadsAndIsa, ChangeNothing) {
  for (const auto architecture : testing_support::AllArchitectures()) {
    const testing_support::TinyModelFile file({.architecture = architecture});
    decode::Request drafted;
    drafted.prompt = testing_support::RandomPrompt(150, 2);
    drafted.max_tokens = 10;
    drafted.ignore_eos = true;
    drafted.hash_logits = true;
    drafted.sampling = {.temperature = 0.8f, .seed = 6};
    drafted.compressor = "snapkv:keep=0.5+kivi:bits=4";
    drafted.draft_len = 7;
    decode::Request lossy = drafted;
    lossy.mode = decode::Mode::kLossy;
    decode::Request full = drafted;
    full.mode = decode::Mode::kFull;

    std::optional<Answer> expected;
    std::optional<Answer> expected_lossy;
    for (const kernels::KernelTable* table : kernels::AvailableKernels()) {
      for (const int n_threads : {1, 2}) {
        const auto engine = testing_support::MakeEngine(
            {.model_path = file.Path(), .n_threads = n_threads, .isa = std::string(table->name)});
        EXPECT_EQ(engine->IsaName(), table->name);
        EXPECT_EQ(engine->ThreadCount(), n_threads);
        const Answer answer = Ask(*engine, full);
        if (!expected) expected = answer;
        EXPECT_EQ(answer, *expected) << table->name << ", " << n_threads << " threads";
        EXPECT_EQ(Ask(*engine, drafted), *expected) << table->name;
        // The lossy text is this engine's own, but reproducible as well.
        const Answer lossy_answer = Ask(*engine, lossy);
        if (!expected_lossy) expected_lossy = lossy_answer;
        EXPECT_EQ(lossy_answer, *expected_lossy) << table->name;
      }
    }
  }
}

}  // namespace
}  // namespace vericache
