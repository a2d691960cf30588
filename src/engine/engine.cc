#include "engine/engine.h"

#include <algorithm>
#include <future>
#include <utility>

#include "compress/registry.h"
#include "engine/channel.h"
#include "engine/float_environment.h"
#include "engine/kv_budget.h"
#include "engine/loop.h"
#include "engine/self_test.h"
#include "kernels/kernels.h"
#include "kernels/numerics.h"
#include "store/kv_file.h"

namespace vericache::engine {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kMaxPrefillChunk = 4096;  // rows whose hidden states a pass holds at once
// Decoding rows of one pass: the longest verify fits, and so do the logits of all of them.
constexpr int kDecodeRows = decode::kMaxDraftLen + 1;

Status ValidateOptions(const EngineOptions& options) {
  const auto refuse = [](std::string_view name, int64_t value, int64_t min, int64_t max) {
    return MakeError(ErrorCode::kInvalidArgument, "{} is {}; it must be in [{}, {}]", name, value,
                     min, max);
  };
  if (options.n_threads < 0 || options.n_threads > kMaxThreads) {
    return refuse("n_threads", options.n_threads, 0, kMaxThreads);
  }
  if (options.prefill_chunk < 1 || options.prefill_chunk > kMaxPrefillChunk) {
    return refuse("prefill_chunk", options.prefill_chunk, 1, kMaxPrefillChunk);
  }
  if (options.max_sessions < 1 || options.max_sessions > 4096) {
    return refuse("max_sessions", options.max_sessions, 1, 4096);
  }
  if (options.max_waiting < 0 || options.max_waiting > 1000000) {
    return refuse("max_waiting", options.max_waiting, 0, 1000000);
  }
  return {};
}

Result<int> ChooseContext(int wanted, int trained) {
  if (wanted == 0) return trained;
  if (wanted < 2 || wanted > trained) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "n_context is {}; it must be in [2, {}], where the model was trained", wanted,
                     trained);
  }
  return wanted;
}

// Every thread of the team, the caller included.
Status CheckTeam(ThreadTeam& team) {
  std::vector<Status> statuses(static_cast<size_t>(team.Size()));
  team.Run([&](Member& member) {
    statuses[static_cast<size_t>(member.Index())] = CheckFloatEnvironment();
  });
  for (const Status& status : statuses) VC_RETURN_IF_ERROR(status);
  return {};
}

class ChannelStream final : public Stream {
 public:
  explicit ChannelStream(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}
  ~ChannelStream() override { channel_->Cancel(); }
  bool Next(Event& event) override { return channel_->Pop(event); }
  void Cancel() override { channel_->Cancel(); }

 private:
  std::shared_ptr<Channel> channel_;
};

struct EngineParts {
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<model::Tokenizer> tokenizer;
  const kernels::KernelTable* kernels = nullptr;
  int n_context = 0;
  size_t kv_bytes = 0;  // budget of the full KV
};

class LocalEngine final : public Engine {
 public:
  LocalEngine(const EngineOptions& options, EngineParts parts)
      : parts_(std::move(parts)),
        pool_(std::make_shared<kv::BlockPool>(parts_.model->Config().Kv(), PoolBytes(options))),
        pass_(*parts_.model, *parts_.kernels, *parts_.team, kDecodeRows + options.prefill_chunk),
        loop_({.team = parts_.team.get(),
               .pool = pool_,
               .pass = &pass_,
               .budget = {.n_decode = kDecodeRows, .n_prefill = options.prefill_chunk},
               .max_sessions = options.max_sessions,
               .max_waiting = options.max_waiting}) {}

  Result<std::unique_ptr<Stream>> Submit(decode::Request request) override {
    VC_RETURN_IF_ERROR(decode::ValidateRequest(
        request, {.n_vocab = parts_.model->Config().n_vocab, .n_context = parts_.n_context}));
    if (request.prefix && request.prefix->pool != pool_) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "the prefix was kept by another engine; give one that this engine kept");
    }
    auto compressor = compress::MakeCompressor(request.compressor);
    VC_RETURN_IF_ERROR(compressor);
    if (!decode::UsesCompressor(request)) compressor->reset();
    const int n_context = ContextOf(request);
    VC_RETURN_IF_ERROR(CheckFits(request, n_context));
    auto sampler = decode::Sampler::Make(request.sampling, *parts_.tokenizer, n_context);
    VC_RETURN_IF_ERROR(sampler);

    const model::ModelConfig& config = parts_.model->Config();
    const auto owner = loop_.SharePool();  // until the loop knows the session
    LiveRequest live;
    live.channel = std::make_shared<Channel>();
    live.session = std::make_unique<decode::Session>(
        std::move(request), decode::SessionParts{.tokenizer = parts_.tokenizer.get(),
                                                 .pool = pool_.get(),
                                                 .sampler = *std::move(sampler),
                                                 .compressor = *std::move(compressor),
                                                 .queries = {.n_layers = config.n_layers,
                                                             .n_heads = config.n_heads,
                                                             .head_dim = config.head_dim},
                                                 .kernels = parts_.kernels,
                                                 .n_context = n_context,
                                                 .weight_bytes = parts_.model->PassWeightBytes()});
    auto stream = std::make_unique<ChannelStream>(live.channel);
    VC_RETURN_IF_ERROR(loop_.Add(std::move(live)));
    return stream;
  }

  Status Save(const decode::KeptKv& kept, int n_tokens, const std::string& note,
              const std::string& path) const override {
    const std::vector<TokenId> tokens(kept.tokens.begin(), kept.tokens.begin() + n_tokens);
    return store::WriteKvFile(path, FileKey(), {.tokens = tokens, .note = note}, kept.kv);
  }

  Result<SavedKv> Restore(const std::string& path) override {
    const auto owner = loop_.SharePool();  // until the blocks are kept
    kv::FullKv full(*pool_);
    auto text = store::ReadKvFile(path, FileKey(), full);
    VC_RETURN_IF_ERROR(text);
    auto kept = std::make_shared<const decode::KeptKv>(pool_, text->tokens, full);
    return SavedKv{std::move(kept), std::move(text->note)};
  }

  const model::Model& GetModel() const override { return *parts_.model; }
  const model::Tokenizer& GetTokenizer() const override { return *parts_.tokenizer; }
  std::string_view IsaName() const override { return parts_.kernels->name; }
  int ThreadCount() const override { return parts_.team->Size(); }
  int ContextSize() const override { return parts_.n_context; }

 private:
  // More than all sessions and one kept answer can use is not reserved.
  size_t PoolBytes(const EngineOptions& options) const {
    const auto n_blocks = (static_cast<size_t>(parts_.n_context) + kv::kBlockTokens - 1) /
                          static_cast<size_t>(kv::kBlockTokens) *
                          static_cast<size_t>(parts_.model->Config().n_layers);
    const size_t block_bytes = kv::BlockLayout(parts_.model->Config().Kv()).Bytes();
    return std::min(parts_.kv_bytes,
                    n_blocks * block_bytes * (static_cast<size_t>(options.max_sessions) + 1));
  }

  int CapacityTokens() const {
    return pool_->Capacity() / parts_.model->Config().n_layers * kv::kBlockTokens;
  }

  store::KvFileKey FileKey() const {
    return {.model = parts_.model->Fingerprint(), .numerics = kernels::kNumericsRevision};
  }

  // An answer without a limit ends where the budget does.
  int ContextOf(const decode::Request& request) const {
    const bool is_open = request.max_tokens < 0 && request.mode != decode::Mode::kLossy;
    return is_open ? std::min(parts_.n_context, CapacityTokens()) : parts_.n_context;
  }

  Status CheckFits(const decode::Request& request, int n_context) const {
    const auto n_prompt = static_cast<int64_t>(request.prompt.size());
    int64_t n_tokens = n_prompt + 1;
    if (request.mode == decode::Mode::kLossy) {
      n_tokens = n_prompt;
    } else if (request.max_tokens >= 0) {
      n_tokens = std::min<int64_t>(n_prompt + request.max_tokens, n_context);
    }
    if (n_tokens <= CapacityTokens()) return {};
    const size_t per_token = kv::FullKvBytesPerToken(pool_->Shape());
    return MakeError(ErrorCode::kResourceExhausted,
                     "the request needs {} tokens of full KV ({} bytes); the budget holds {} ({} "
                     "bytes): raise --fast-kv, or the memory that this process may use",
                     n_tokens, static_cast<size_t>(n_tokens) * per_token, CapacityTokens(),
                     static_cast<size_t>(CapacityTokens()) * per_token);
  }

  EngineParts parts_;
  std::shared_ptr<kv::BlockPool> pool_;  // kept KV may outlive the engine
  model::Pass pass_;
  Loop loop_;  // last: its thread uses all of the above
};

// One block for each layer is the least.
Status CheckKvBudget(const EngineOptions& options, const model::ModelConfig& config,
                     size_t kv_bytes) {
  const size_t smallest =
      kv::BlockLayout(config.Kv()).Bytes() * static_cast<size_t>(config.n_layers);
  if (options.fast_kv_bytes < smallest) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "fast_kv_bytes is {}; {} tokens of this model's KV take {}",
                     options.fast_kv_bytes, kv::kBlockTokens, smallest);
  }
  if (kv_bytes >= smallest) return {};
  return MakeError(ErrorCode::kResourceExhausted,
                   "the memory that this process may use leaves {} bytes beside the weights; {} "
                   "tokens of this model's KV take {}",
                   kv_bytes, kv::kBlockTokens, smallest);
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options) {
  VC_RETURN_IF_ERROR(ValidateOptions(options));
  auto kernels = kernels::SelectKernels(options.isa);
  VC_RETURN_IF_ERROR(kernels);
  const MachineLimits limits = ReadMachineLimits();
  EngineParts parts;
  parts.kernels = *kernels;
  parts.team =
      std::make_unique<ThreadTeam>(options.n_threads > 0 ? options.n_threads : limits.n_cores);
  VC_RETURN_IF_ERROR(CheckTeam(*parts.team));
  VC_RETURN_IF_ERROR(SelfTest(*parts.kernels));

  auto model = model::Model::Load(options.model_path, *parts.team);
  VC_RETURN_IF_ERROR(model);
  parts.model = *std::move(model);
  auto tokenizer = model::Tokenizer::Load(options.model_path);
  VC_RETURN_IF_ERROR(tokenizer);
  parts.tokenizer = *std::move(tokenizer);
  const model::ModelConfig& config = parts.model->Config();
  if (parts.tokenizer->VocabSize() != config.n_vocab) {
    return MakeError(ErrorCode::kDataLoss, "{}: the tokenizer has {} tokens, the model {}",
                     options.model_path, parts.tokenizer->VocabSize(), config.n_vocab);
  }
  auto n_context = ChooseContext(options.n_context, config.n_context);
  VC_RETURN_IF_ERROR(n_context);
  parts.n_context = *n_context;
  parts.kv_bytes = KvBudget(options.fast_kv_bytes, parts.model->WeightBytes(), limits);
  VC_RETURN_IF_ERROR(CheckKvBudget(options, config, parts.kv_bytes));
  return std::make_unique<LocalEngine>(options, std::move(parts));
}

}  // namespace vericache::engine
