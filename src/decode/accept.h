// The acceptance rule, at every temperature: the longest common prefix.
//
// A token is a function of its logits and its place (decode/sampler.h), so a drafted token that
// equals the verified one is the token that plain decoding gives, and the first that differs is
// replaced by the verified one. There is no other rule and no second code path.
// Threads: pure. Source: VeriCache (arXiv 2605.17613), draft-and-verify loop.
#pragma once

#include <span>

#include "base/ids.h"

namespace vericache::decode {

// Drafted tokens that are accepted. `verified` may end at its first difference from `drafted`.
int CountAccepted(std::span<const TokenId> drafted, std::span<const TokenId> verified);

}  // namespace vericache::decode
