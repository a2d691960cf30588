// The model that the command-line tests run: write_tiny_model PATH [llama|qwen2].
#include <cstdio>
#include <string_view>

#include "model/tiny_model.h"

int main(int argc, char** argv) {
  using vericache::model::Architecture;
  if (argc < 2) {
    std::fputs("write_tiny_model PATH [llama|qwen2]\n", stderr);
    return 2;
  }
  const bool is_qwen2 = argc > 2 && std::string_view(argv[2]) == "qwen2";
  vericache::model::TinyModelSpec spec;
  spec.architecture = is_qwen2 ? Architecture::kQwen2 : Architecture::kLlama;
  spec.n_context = 2048;
  const auto status = vericache::model::WriteTinyModel(spec, argv[1]);
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}
