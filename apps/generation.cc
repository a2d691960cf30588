#include "apps/generation.h"

#include <utility>

namespace vericache::apps {
namespace {

void Append(Generation& generation, engine::Event& event) {
  generation.tokens.insert(generation.tokens.end(), event.tokens.begin(), event.tokens.end());
  generation.text += event.text;
  generation.logprobs.insert(generation.logprobs.end(),
                             std::make_move_iterator(event.logprobs.begin()),
                             std::make_move_iterator(event.logprobs.end()));
}

}  // namespace

double Generation::TokensPerSecond() const {
  if (stats.generated_tokens < 2 || stats.decode_s <= 0) return 0;
  return (stats.generated_tokens - 1) / stats.decode_s;
}

double Generation::PrefillTokensPerSecond() const {
  return stats.prefill_s > 0 ? (stats.prompt_tokens - stats.reused_tokens) / stats.prefill_s : 0;
}

double Generation::MeanAccepted() const {
  return stats.rounds > 0 ? static_cast<double>(stats.accepted) / stats.rounds : 0;
}

Result<Generation> Collect(engine::Stream& stream, const Watcher& watcher) {
  Generation generation;
  Error error{ErrorCode::kInternal, ""};
  engine::Event event;
  while (stream.Next(event)) {
    switch (event.kind) {
      case engine::Event::Kind::kPrefill:
        if (watcher.on_prefill) watcher.on_prefill(event.prefilled);
        break;
      case engine::Event::Kind::kTokens:
        if (watcher.on_tokens && !watcher.on_tokens(event)) stream.Cancel();
        Append(generation, event);
        break;
      case engine::Event::Kind::kFinished:
        generation.reason = event.reason;
        generation.stats = event.stats;
        generation.kept = std::move(event.kept);
        error = event.error;
        break;
    }
  }
  if (generation.reason == decode::FinishReason::kError) return tl::unexpected(std::move(error));
  return generation;
}

Result<Generation> Generate(engine::Engine& engine, decode::Request request, const Watcher& watcher,
                            Interrupts& interrupts) {
  auto submitted = engine.Submit(std::move(request));
  if (!submitted) return tl::unexpected(submitted.error());
  engine::Stream& stream = **submitted;
  interrupts.OnInterrupt([&stream] { stream.Cancel(); });
  auto generation = Collect(stream, watcher);
  interrupts.OnInterrupt({});
  return generation;
}

}  // namespace vericache::apps
