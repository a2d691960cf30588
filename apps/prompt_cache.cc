#include "apps/prompt_cache.h"

#include <algorithm>

#include "apps/tell.h"

namespace vericache::apps {

Result<std::shared_ptr<const decode::KeptKv>> ReadPromptCache(engine::Engine& engine,
                                                              const std::string& path) {
  auto restored = engine.Restore(path);
  if (restored) return std::move(restored->kept);
  const Error& error = restored.error();
  if (error.code == ErrorCode::kInvalidArgument) return tl::unexpected(error);
  if (error.code != ErrorCode::kNotFound) {
    Tell("vericache run: {}; the prompt is prefilled anew\n", error.message);
  }
  return nullptr;
}

Status WritePromptCache(const engine::Engine& engine, const std::string& path,
                        const decode::Request& request, const Generation& generation,
                        const std::vector<TokenId>& cached) {
  if (!generation.kept) return {};
  const auto n_prompt =
      static_cast<int>(std::min(request.prompt.size(), generation.kept->tokens.size()));
  if (decode::CommonPrefix(request.prompt, cached) >= n_prompt) return {};
  return engine.Save(*generation.kept, n_prompt, "", path);
}

}  // namespace vericache::apps
