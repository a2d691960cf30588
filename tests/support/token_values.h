// The numbers of tokens: what a failing comparison should print.
#pragma once

#include <vector>

#include "base/ids.h"

namespace vericache::testing_support {

inline std::vector<int> Values(const std::vector<TokenId>& tokens) {
  std::vector<int> values;
  for (const TokenId token : tokens) values.push_back(token.value);
  return values;
}

}  // namespace vericache::testing_support
