// Goal: the claim of batch_test.cc, over twenty rounds (D1) on both architectures, with few live
// sessions at a time as well, so that requests also wait for one another.
// Method: as there, with longer answers.

#include "tests/support/batch_case.h"

namespace vericache {
namespace {

TEST(BatchSlow, TwentyRoundsEqualTheirSoloRuns) {
  for (const auto architecture : testing_support::AllArchitectures()) {
    for (const int max_sessions : {3, 64}) {
      const testing_support::TinyModelFile file({.architecture = architecture});
      const auto engine = testing_support::MakeEngine({.model_path = file.Path(),
                                                       .n_threads = 2,
                                                       .prefill_chunk = 64,
                                                       .max_sessions = max_sessions});
      testing_support::ExpectSoloAnswersInBatches(*engine, 40, 20);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace vericache
