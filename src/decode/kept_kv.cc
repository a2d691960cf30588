#include "decode/kept_kv.h"

#include <algorithm>
#include <utility>

namespace vericache::decode {

KeptKv::KeptKv(std::shared_ptr<kv::BlockPool> pool_of_kv, std::span<const TokenId> all_tokens,
               const kv::FullKv& full)
    : pool(std::move(pool_of_kv)),
      tokens(all_tokens.begin(), all_tokens.begin() + full.Length()),
      kv(*pool) {
  kv.Share(full, full.Length());
}

int CommonPrefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<int>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace vericache::decode
