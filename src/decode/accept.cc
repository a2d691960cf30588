#include "decode/accept.h"

#include <algorithm>

namespace vericache::decode {

int CountAccepted(std::span<const TokenId> drafted, std::span<const TokenId> verified) {
  const auto differ =
      std::mismatch(drafted.begin(), drafted.end(), verified.begin(), verified.end());
  return static_cast<int>(differ.first - drafted.begin());
}

}  // namespace vericache::decode
