// Entry for libFuzzer, which brings its own main.
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vericache::fuzz::RunOne({data, size});
  return 0;
}
