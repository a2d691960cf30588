// The model that the command-line tests run: write_tiny_model PATH [large].
#include <cstdio>
#include <string_view>

#include "model/tiny_model.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("write_tiny_model PATH [large]\n", stderr);
    return 2;
  }
  vericache::model::TinyModelSpec spec;
  spec.n_context = 2048;
  if (argc > 2 && std::string_view(argv[2]) == "large") {  // seconds of prefill with scalar kernels
    spec.n_layers = 12;
    spec.n_heads = 8;
    spec.n_ffn = 1024;
  }
  const auto status = vericache::model::WriteTinyModel(spec, argv[1]);
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}
