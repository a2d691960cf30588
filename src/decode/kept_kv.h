// The full KV of an answer, kept for later requests that begin with the same tokens. A request that
// is given one runs only the rest of its prompt and shares the blocks; its answer is the same to
// the bit (I3), it only comes sooner.
//
// Threads: immutable; blocks go back to their pool with the last owner, in whatever thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/block_pool.h"
#include "kv/full_kv.h"

namespace vericache::decode {

struct KeptKv {
  // Keeps all tokens of `full`, which are the first ones of `tokens`.
  KeptKv(std::shared_ptr<kv::BlockPool> pool, std::span<const TokenId> tokens,
         const kv::FullKv& full);

  std::shared_ptr<kv::BlockPool> pool;  // first: it outlives the blocks
  std::vector<TokenId> tokens;          // prompt and answer; as many as the KV holds
  kv::FullKv kv;
};

// Tokens at the beginning that both have.
int CommonPrefix(std::span<const TokenId> a, std::span<const TokenId> b);

}  // namespace vericache::decode
