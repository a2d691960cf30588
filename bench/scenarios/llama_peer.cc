// llama.cpp behind the commands of `vericache bench --commands` (apps/bench_commands.h): open,
// depth and pass, with the same tokens at the same places. Built by third_party/fetch.py from the
// native build of the pinned source, so that both engines can take turns in one run.
//
//   llama_peer MODEL KV_TYPE FLASH_ATTENTION THREADS
//
// KV_TYPE: f16, or q8_0 (which needs flash attention). FLASH_ATTENTION: on or off.
//
// A long prefill takes llama.cpp many minutes, and the time of a pass does not depend on what the
// KV holds. So only the first tokens are prefilled; their cells are repeated at later positions.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "llama.h"

namespace {

constexpr int kBatchRows = 512;  // llama.cpp's own default of a physical batch

struct Options {
  std::string model;
  std::string kv_type;
  bool is_flash = false;
  int n_threads = 1;
};

[[noreturn]] void Fail(const std::string& sentence) {
  std::printf("{\"error\": \"%s\"}\n", sentence.c_str());
  std::fflush(stdout);
  std::exit(1);
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Consecutive rows of some sequences, all behind the same depth.
class Batch {
 public:
  explicit Batch(int n_rows) : batch_(llama_batch_init(n_rows, 0, 1)) {}
  ~Batch() { llama_batch_free(batch_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void Add(llama_token token, int position, int sequence, bool has_logits) {
    const int i = batch_.n_tokens++;
    batch_.token[i] = token;
    batch_.pos[i] = position;
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = sequence;
    batch_.logits[i] = has_logits ? 1 : 0;
  }
  const llama_batch& Get() const { return batch_; }

 private:
  llama_batch batch_;
};

// One context of llama.cpp and what is in it: sequences of one depth.
class Context {
 public:
  // is_unified: the sequences share one buffer, as llama.cpp advises for related ones alone.
  Context(llama_model* model, const Options& options, int n_sequences, int n_tokens,
          bool is_unified) {
    llama_context_params params = llama_context_default_params();
    params.n_seq_max = static_cast<uint32_t>(n_sequences);
    params.kv_unified = is_unified;
    params.n_ctx = static_cast<uint32_t>(is_unified ? n_tokens : n_sequences * n_tokens);
    params.n_threads = params.n_threads_batch = options.n_threads;
    params.type_k = params.type_v = options.kv_type == "q8_0" ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
    params.flash_attn_type =
        options.is_flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    context_ = llama_init_from_model(model, params);
    if (context_ == nullptr) Fail("llama.cpp cannot make a context of this kind");
    n_vocab_ = llama_vocab_n_tokens(llama_model_get_vocab(model));
    n_streams_ = is_unified ? 1 : n_sequences;
  }
  ~Context() { llama_free(context_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Rows behind `depth` tokens of each sequence.
  void Run(int n_sequences, int depth, int n_rows, bool all_logits) {
    Batch batch(n_rows * n_sequences);
    for (int sequence = 0; sequence < n_sequences; ++sequence) {
      for (int row = 0; row < n_rows; ++row) {
        const auto token = static_cast<llama_token>(int64_t{depth + row} * 7919 % n_vocab_);
        batch.Add(token, depth + row, sequence, all_logits || row + 1 == n_rows);
      }
    }
    if (llama_decode(context_, batch.Get()) != 0) Fail("llama_decode failed");
    llama_synchronize(context_);
  }

  void Forget(int sequence, int n_kept) { llama_memory_seq_rm(Memory(), sequence, n_kept, -1); }

  std::vector<uint8_t> Save() {
    std::vector<uint8_t> state(llama_state_seq_get_size(context_, 0));
    state.resize(llama_state_seq_get_data(context_, state.data(), state.size(), 0));
    return state;
  }

  // A state of one stream. Behind two words the format has the number of streams, and each begins
  // with the number of its cells.
  void Load(std::vector<uint8_t> state, int sequence) {
    const auto n_streams = static_cast<uint32_t>(n_streams_);
    std::memcpy(state.data() + 2 * sizeof(uint32_t), &n_streams, sizeof(n_streams));
    state.resize(state.size() + (n_streams - 1) * sizeof(uint32_t));  // no cells in the others
    if (llama_state_seq_set_data(context_, state.data(), state.size(), sequence) == 0) {
      Fail("llama.cpp refused a state of its own");
    }
  }

  // The cells of `from`, moved by n_positions, join sequence `to` of the same buffer.
  void Append(int from, int to, int n_positions) {
    llama_memory_seq_add(Memory(), from, -1, -1, n_positions);
    llama_memory_seq_cp(Memory(), from, to, -1, -1);
    Forget(from, -1);
  }

 private:
  llama_memory_t Memory() { return llama_get_memory(context_); }

  llama_context* context_ = nullptr;
  int n_vocab_ = 0;
  int n_streams_ = 1;
};

class Peer {
 public:
  explicit Peer(const Options& options) : options_(options) {
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    model_ = llama_model_load_from_file(options.model.c_str(), params);
    if (model_ == nullptr) Fail("llama.cpp cannot load " + options.model);
  }

  void Open(int n_sequences, int n_tokens) {
    context_.reset();  // its memory first
    context_ = std::make_unique<Context>(model_, options_, n_sequences, n_tokens,
                                         /*is_unified=*/n_sequences == 1);
    n_sequences_ = n_sequences;
    n_tokens_ = n_tokens;
    depth_ = 0;
  }

  void SetDepth(int depth) {
    if (!context_ || depth > n_tokens_) Fail("there is no room for this depth");
    if (depth > depth_) {
      MakePrompt(depth);
      for (int sequence = 0; sequence < n_sequences_; ++sequence) context_->Load(prompt_, sequence);
    }
    depth_ = depth;
    for (int sequence = 0; sequence < n_sequences_; ++sequence) context_->Forget(sequence, depth);
  }

  double Pass(int n_rows, bool all_logits) {
    if (!context_ || depth_ + n_rows > n_tokens_) Fail("there is no room for these rows");
    const auto begin = std::chrono::steady_clock::now();
    context_->Run(n_sequences_, depth_, n_rows, all_logits);
    const double seconds = SecondsSince(begin);
    for (int sequence = 0; sequence < n_sequences_; ++sequence) context_->Forget(sequence, depth_);
    return seconds;
  }

 private:
  // prompt_ then holds at least `depth` tokens, and no more than there is room for.
  void MakePrompt(int depth) {
    if (n_prompt_ >= depth && n_prompt_ <= n_tokens_) return;
    const int n_pieces = (depth + kBatchRows - 1) / kBatchRows;
    Context maker(model_, options_, 2, (n_pieces + 2) * kBatchRows, /*is_unified=*/true);
    if (piece_.empty()) {
      maker.Run(1, 0, kBatchRows, /*all_logits=*/false);
      piece_ = maker.Save();
    } else {
      maker.Load(piece_, 0);
    }
    for (int i = 1; i < n_pieces; ++i) {
      maker.Load(piece_, 1);
      maker.Append(1, 0, i * kBatchRows);
    }
    maker.Run(1, n_pieces * kBatchRows, 1, /*all_logits=*/false);  // keys turn when something runs
    maker.Forget(0, depth);
    prompt_ = maker.Save();
    n_prompt_ = depth;
  }

  Options options_;
  llama_model* model_ = nullptr;
  std::unique_ptr<Context> context_;
  int n_sequences_ = 0;
  int n_tokens_ = 0;  // room of each sequence
  int depth_ = 0;
  std::vector<uint8_t> piece_;   // state of the first kBatchRows tokens
  std::vector<uint8_t> prompt_;  // state of the prompt made last
  int n_prompt_ = 0;
};

void Answer(Peer& peer, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  double seconds = 0;
  if (int n_sequences = 0, n_tokens = 0;
      command == "open" && words >> n_sequences >> n_tokens && n_sequences > 0 && n_tokens > 0) {
    peer.Open(n_sequences, n_tokens);
  } else if (int depth = 0; command == "depth" && words >> depth && depth >= 0) {
    const auto begin = std::chrono::steady_clock::now();
    peer.SetDepth(depth);
    seconds = SecondsSince(begin);
  } else if (int n_rows = 0; command == "pass" && words >> n_rows && n_rows > 0) {
    std::string logits;
    words >> logits;
    seconds = peer.Pass(n_rows, logits == "all");
  } else {
    Fail("no such command: " + line);
  }
  std::printf("{\"seconds\": %.9f}\n", seconds);
  std::fflush(stdout);
}

void LogErrors(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) Fail("llama_peer MODEL KV_TYPE FLASH_ATTENTION THREADS");
  llama_log_set(LogErrors, nullptr);
  llama_backend_init();
  Peer peer({argv[1], argv[2], std::string(argv[3]) == "on", std::atoi(argv[4])});
  std::printf("{\"engine\": \"llama.cpp\", \"kv\": \"%s\", \"flash\": \"%s\"}\n", argv[2], argv[3]);
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) Answer(peer, line);
  return 0;
}
