// What identifies a model in results and in keys of stored KV: everything its arithmetic and its
// tokens depend on, and nothing else (not the chat template, not the file's name).
//
// The data of each tensor enters through XXH3-128, taken while it is packed: SHA-256 over a
// gigabyte would cost more than the whole load. So the fingerprint tells models apart; it does not
// protect against one made to collide.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "model/gguf_file.h"
#include "model/model.h"
#include "model/weights.h"

namespace vericache::model {

// Hex SHA-256 of a text with one line per hyper-parameter, tokenizer table and tensor (by name).
// Errors: kDataLoss if the file was cut meanwhile, kInternal if the hash fails.
Result<std::string> FingerprintOf(const GgufFile& file, const ModelConfig& config,
                                  std::span<const TensorDigest> tensors);

}  // namespace vericache::model
