// llama.cpp behind the commands of `vericache bench --commands` (apps/bench_commands.h): open,
// depth and pass, with the same tokens at the same places. Built by third_party/fetch.py from the
// native build of the pinned source, so that both engines can take turns in one run.
//
//   llama_peer MODEL KV_TYPE FLASH_ATTENTION THREADS STATE_FILE
//
// KV_TYPE: f16, or q8_0 (which needs flash attention). FLASH_ATTENTION: on or off. STATE_FILE keeps
// the longest prompt prefilled so far, for later runs: a long prefill takes minutes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "llama.h"

namespace {

constexpr int kBatchRows = 512;      // llama.cpp's own default of a physical batch
constexpr int kWorthKeeping = 1000;  // tokens; fewer are prefilled sooner than read

struct Options {
  std::string model;
  std::string kv_type;
  bool is_flash = false;
  int n_threads = 1;
  std::string state_file;
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

class Peer {
 public:
  explicit Peer(const Options& options) : options_(options) {
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    model_ = llama_model_load_from_file(options.model.c_str(), params);
    if (model_ == nullptr) Fail("llama.cpp cannot load " + options.model);
    n_vocab_ = llama_vocab_n_tokens(llama_model_get_vocab(model_));
  }

  void Open(int n_sequences, int n_tokens) {
    if (context_ != nullptr) llama_free(context_);
    llama_context_params params = llama_context_default_params();
    params.n_seq_max = static_cast<uint32_t>(n_sequences);
    params.kv_unified = n_sequences == 1;  // what llama.cpp advises for unrelated sequences
    params.n_ctx = static_cast<uint32_t>(n_sequences * n_tokens);
    params.n_threads = params.n_threads_batch = options_.n_threads;
    params.type_k = params.type_v = options_.kv_type == "q8_0" ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
    params.flash_attn_type =
        options_.is_flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    context_ = llama_init_from_model(model_, params);
    if (context_ == nullptr) Fail("llama.cpp cannot make a context of this kind");
    n_sequences_ = n_sequences;
    n_tokens_ = n_tokens;
    depth_ = 0;
  }

  void SetDepth(int depth) {
    if (context_ == nullptr || depth > n_tokens_) Fail("there is no room for this depth");
    if (depth > depth_) Restore();
    if (depth < depth_) Forget(0, depth);
    depth_ = std::min(depth, depth_);
    const bool is_longer = depth > depth_;
    while (depth_ < depth) {
      const int n_rows = std::min(kBatchRows, depth - depth_);
      Run(n_rows, /*all_logits=*/false, /*n_sequences=*/1);
      depth_ += n_rows;
    }
    if (is_longer && depth >= kWorthKeeping) Keep();
    for (int sequence = 1; sequence < n_sequences_; ++sequence) {
      Forget(sequence, 0);
      llama_memory_seq_cp(llama_get_memory(context_), 0, sequence, -1, -1);
    }
  }

  double Pass(int n_rows, bool all_logits) {
    if (context_ == nullptr || depth_ + n_rows > n_tokens_) Fail("there is no room for these rows");
    const auto begin = std::chrono::steady_clock::now();
    Run(n_rows, all_logits, n_sequences_);
    const double seconds = SecondsSince(begin);
    for (int sequence = 0; sequence < n_sequences_; ++sequence) Forget(sequence, depth_);
    return seconds;
  }

 private:
  llama_token TokenAt(int position) const {
    return static_cast<llama_token>(int64_t{position} * 7919 % n_vocab_);
  }

  void Run(int n_rows, bool all_logits, int n_sequences) {
    Batch batch(n_rows * n_sequences);
    for (int sequence = 0; sequence < n_sequences; ++sequence) {
      for (int row = 0; row < n_rows; ++row) {
        batch.Add(TokenAt(depth_ + row), depth_ + row, sequence, all_logits || row + 1 == n_rows);
      }
    }
    if (llama_decode(context_, batch.Get()) != 0) Fail("llama_decode failed");
    llama_synchronize(context_);
  }

  void Forget(int sequence, int n_kept) {
    llama_memory_seq_rm(llama_get_memory(context_), sequence, n_kept, -1);
  }

  // The kept prompt in place of a shorter one. A file that is missing, or of another build, is
  // none.
  void Restore() {
    std::vector<llama_token> tokens(static_cast<size_t>(n_tokens_));
    size_t n_kept = 0;
    std::FILE* file = std::fopen(options_.state_file.c_str(), "rb");
    if (file == nullptr) return;
    std::fclose(file);
    if (llama_state_seq_load_file(context_, options_.state_file.c_str(), 0, tokens.data(),
                                  tokens.size(), &n_kept) == 0) {
      Forget(0, 0);
      n_kept = 0;
    }
    depth_ = static_cast<int>(n_kept);
  }

  void Keep() const {
    std::vector<llama_token> tokens;
    for (int i = 0; i < depth_; ++i) tokens.push_back(TokenAt(i));
    const std::string unfinished = options_.state_file + ".unfinished";
    if (llama_state_seq_save_file(context_, unfinished.c_str(), 0, tokens.data(), tokens.size()) !=
        0) {
      std::rename(unfinished.c_str(), options_.state_file.c_str());
    }
  }

  Options options_;
  llama_model* model_ = nullptr;
  llama_context* context_ = nullptr;
  int n_vocab_ = 0;
  int n_sequences_ = 0;
  int n_tokens_ = 0;  // room of each sequence
  int depth_ = 0;
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
  if (argc != 6) Fail("llama_peer MODEL KV_TYPE FLASH_ATTENTION THREADS STATE_FILE");
  llama_log_set(LogErrors, nullptr);
  llama_backend_init();
  Peer peer({argv[1], argv[2], std::string(argv[3]) == "on", std::atoi(argv[4]), argv[5]});
  std::printf("{\"engine\": \"llama.cpp\", \"kv\": \"%s\", \"flash\": \"%s\"}\n", argv[2], argv[3]);
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) Answer(peer, line);
  return 0;
}
