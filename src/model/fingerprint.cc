#include "model/fingerprint.h"

#include <fmt/ranges.h>
#include <openssl/evp.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <iterator>

#include "kernels/numerics.h"
#include "model/architectures.h"

namespace vericache::model {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

Result<std::string> HexSha256(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int n_bytes = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &n_bytes, EVP_sha256(), nullptr) != 1) {
    return MakeError(ErrorCode::kInternal, "SHA-256 is not available in the OpenSSL library");
  }
  return fmt::format("{:02x}", fmt::join(std::span(digest, n_bytes), ""));
}

// Hex XXH3-128 of a value as it lies in the file.
Result<std::string> HashOfValue(const ReadOnlyFile& file, const GgufValue& value) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  std::vector<std::byte> piece;
  for (uint64_t n_done = 0; n_done < value.n_bytes; n_done += piece.size()) {
    piece.resize(static_cast<size_t>(std::min<uint64_t>(kPieceBytes, value.n_bytes - n_done)));
    VC_RETURN_IF_ERROR(file.Read(value.offset + n_done, piece));
    XXH3_128bits_update(&state, piece.data(), piece.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string DescribeConfig(const ModelConfig& config) {
  const RopeParams& rope = config.rope;
  return fmt::format(
      "numerics {}\narchitecture {}\nlayers {}\nheads {} {} {}\nwidths {} {} {}\ncontext {}\neps "
      "{:a}\n"
      "rope {:a} {} {} {} {:a} {} {:a} {:a} {:a} [{:a}]\n",
      kernels::kNumericsRevision, TraitsOf(config.architecture).name, config.n_layers,
      config.n_heads, config.n_kv_heads, config.head_dim, config.n_embd, config.n_ffn,
      config.n_vocab, config.n_context, config.norm_eps, rope.base, rope.n_dims,
      static_cast<int>(rope.pairs), static_cast<int>(rope.scaling), rope.factor,
      rope.original_context, rope.attention_factor, rope.beta_fast, rope.beta_slow,
      fmt::join(rope.frequency_factors, " "));
}

}  // namespace

Result<std::string> FingerprintOf(const GgufFile& file, const ModelConfig& config,
                                  std::span<const TensorDigest> tensors) {
  std::string text = DescribeConfig(config);
  for (const auto& [key, value] : file.Values()) {  // sorted by key
    if (!key.starts_with("tokenizer.ggml.")) continue;
    const Result<std::string> hash = HashOfValue(file.File(), value);
    if (!hash) return tl::unexpected(hash.error());
    fmt::format_to(std::back_inserter(text), "{} {}\n", key, *hash);
  }
  std::vector<TensorDigest> sorted(tensors.begin(), tensors.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const TensorDigest& tensor : sorted) {
    fmt::format_to(std::back_inserter(text), "tensor {} {} {} {}\n", tensor.name, tensor.type,
                   tensor.shape, tensor.hash);
  }
  return HexSha256(text);
}

}  // namespace vericache::model
