// Goal: what shares a pass never changes an answer (I3): requests of every kind at once equal
// their solo runs (D1).
// Method: eight equal and eight different requests submitted together, against the same engine
// that answered them one by one.

#include "tests/support/batch_case.h"

namespace vericache {
namespace {

TEST(Batch, EqualAndDifferentRequestsAtOnceEqualTheirSoloRuns) {
  const testing_support::TinyModelFile file;
  const auto engine = testing_support::MakeEngine(
      {.model_path = file.Path(), .n_threads = 2, .prefill_chunk = 100});
  testing_support::ExpectSoloAnswersInBatches(*engine, 16, 2);
}

}  // namespace
}  // namespace vericache
