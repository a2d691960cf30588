// Full KV as a file: the tokens, their exact K and V, and a note of whoever wrote it. Read back, it
// is the same KV, bit for bit, or an error.
//
// Layout (little-endian): header, note, token ids, then each layer of each block of 256 tokens with
// its checksum. A checksum covers everything; every chunk's is seeded with its place.
// Threads: pure, but for the file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kv/full_kv.h"

namespace vericache::store {

// What computed the KV. Under another key the same tokens have other bits.
struct KvFileKey {
  std::string model;  // fingerprint: 64 hex digits
  int numerics = 0;   // revision
};

struct KvFileText {
  std::vector<TokenId> tokens;
  std::string note;
};

// Writes the first text.tokens.size() tokens of `full`. The file appears whole or not at all, and
// only its owner may read it: it holds a conversation.
// Errors: kNotFound with the system's reason; kInvalidArgument if another file has that name.
Status WriteKvFile(const std::string& path, const KvFileKey& key, const KvFileText& text,
                   const kv::FullKv& full);

// Fills `full`, which must be empty.
// Errors: kNotFound if there is no such file; kInvalidArgument if it is no KV file, or one of
//         another model or numerics; kDataLoss if it is damaged; kResourceExhausted.
Result<KvFileText> ReadKvFile(const std::string& path, const KvFileKey& key, kv::FullKv& full);

}  // namespace vericache::store
