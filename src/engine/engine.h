// The engine: Submit(Request) -> Stream. It owns the model, the KV pool, the threads and the loop;
// every iteration is one forward pass over the rows that all live sessions want (prefill chunks,
// draft rows, verify rows together).
//
// Threads: Submit and the members of Stream may be called from any thread. A stream may outlive
// its engine, which ends it with kCancelled.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "decode/kept_kv.h"
#include "decode/request.h"
#include "model/model.h"
#include "model/tokenizer.h"

namespace vericache::engine {

struct EngineOptions {
  std::string model_path;
  int n_threads = 0;                       // 0: all cores
  std::string isa = "auto";                // auto, ref, avx2, avx512, avx512vnni
  size_t fast_kv_bytes = size_t{4} << 30;  // budget of the full KV
  int n_context = 0;                       // 0: as trained
  int prefill_chunk = 256;                 // rows of one prefill pass
  int max_sessions = 64;                   // live at once; more wait
  int max_waiting = 1024;                  // beyond them Submit refuses
};

// What a stream delivers, in order. A slow reader finds several events of one kind joined in one.
struct Event {
  enum class Kind : uint8_t { kPrefill, kTokens, kFinished } kind = Kind::kTokens;
  int prefilled = 0;              // kPrefill: prompt tokens done so far
  std::vector<TokenId> tokens{};  // kTokens: accepted tokens only (I2)
  std::string text{};  // kTokens: complete UTF-8 text that these tokens release (may be empty)
  std::vector<decode::TokenLogprobs> logprobs{};              // kTokens: one per token, if asked
  decode::FinishReason reason = decode::FinishReason::kNone;  // kFinished
  Error error{};                                              // kFinished with kError
  decode::Stats stats{};                                      // kFinished (kTokens: so far)
  std::shared_ptr<const decode::KeptKv> kept{};  // kFinished, if asked: may outlive the engine
};

// What Restore read.
struct SavedKv {
  std::shared_ptr<const decode::KeptKv> kept;
  std::string note;
};

class Stream {
 public:
  virtual ~Stream() = default;  // cancels if unfinished
  // Blocks until the next event; false after kFinished was delivered.
  virtual bool Next(Event& event) = 0;
  // The request ends with kCancelled at the next iteration, in whatever phase it is.
  virtual void Cancel() = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Loads the model, chooses kernels, runs the identity self-test.
  // Errors: kInvalidArgument for an option out of range; those of Model::Load; kUnsupported for an
  //         instruction set this machine lacks; kInternal if the self-test fails.
  static Result<std::unique_ptr<Engine>> Create(const EngineOptions& options);

  // Kept KV takes its part of the budget until its last owner drops it. A request that does not fit
  // beside it prefills anew; one that does not fit even so ends with kResourceExhausted.
  // Errors: kInvalidArgument (value and range), kResourceExhausted if the request can never fit the
  //         budget or too many wait.
  virtual Result<std::unique_ptr<Stream>> Submit(decode::Request request) = 0;

  // Writes the first n_tokens of kept KV, and a note, to a file that appears whole or not at all.
  // Errors: kNotFound with the system's reason.
  virtual Status Save(const decode::KeptKv& kept, int n_tokens, const std::string& note,
                      const std::string& path) const = 0;
  // Reads it back: bit for bit, or an error, and then nothing is kept.
  // Errors: kNotFound if there is no such file; kInvalidArgument if it is another file or one of
  //         another model; kDataLoss if it is damaged; kResourceExhausted.
  virtual Result<SavedKv> Restore(const std::string& path) = 0;

  virtual const model::Model& GetModel() const = 0;
  virtual const model::Tokenizer& GetTokenizer() const = 0;
  virtual std::string_view IsaName() const = 0;
  virtual int ThreadCount() const = 0;
  virtual int ContextSize() const = 0;
};

}  // namespace vericache::engine
