// A GGUF file is refused, or runs: loaded, tokenized with, and its logits of some tokens computed.
#include "base/check.h"
#include "kernels/kernels.h"
#include "model/chat_template.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/model_run.h"
#include "tests/support/tiny_model_file.h"

namespace vericache::fuzz {

bool RunOne(std::span<const uint8_t> input) {
  static const kernels::KernelTable* const kernels = *kernels::SelectKernels("auto");
  static ThreadTeam team(1);
  const MemoryFile file(input);
  const auto model = model::Model::Load(file.Path(), team);
  const auto tokenizer = model::Tokenizer::Load(file.Path());
  const auto chat_template = model::ChatTemplate::Load(file.Path(), "");
  VC_CHECK(model || !model.error().message.empty());
  VC_CHECK(tokenizer || !tokenizer.error().message.empty());
  if (tokenizer && chat_template) {
    (void)(*chat_template)->Apply({{.role = "user", .content = "Hi"}}, true, **tokenizer);
  }
  if (!model || !tokenizer) return false;
  std::vector<TokenId> tokens = (*tokenizer)->Encode("It was");
  std::erase_if(tokens, [&](TokenId token) { return token.value >= (*model)->Config().n_vocab; });
  if (tokens.empty()) return false;
  model::Pass pass(**model, *kernels, team, static_cast<int>(tokens.size()));
  testing_support::FullSequence sequence(**model, static_cast<int>(tokens.size()));
  const model::RowGroup group = sequence.Rows(tokens);
  return pass.Run({&group, 1}).front().are_all_rows_finite;
}

std::vector<std::string> Seeds() {
  const auto bytes_of = [](model::TinyModelSpec spec) {
    spec.n_layers = 1;
    spec.n_heads = 2;
    spec.n_kv_heads = 1;
    spec.n_ffn = 64;
    spec.n_vocab = 264;
    spec.n_context = 64;
    return testing_support::ReadBytes(testing_support::TinyModelFile(spec).Path());
  };
  return {bytes_of({}), bytes_of({.architecture = model::Architecture::kQwen2,
                                  .weight_type = "q4_0",
                                  .is_tied = false,
                                  .rope_scaling = model::RopeScaling::kYarn})};
}

}  // namespace vericache::fuzz
