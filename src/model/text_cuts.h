// Where a text may be cut before it reaches libllama's tokenizer: between valid UTF-8 and other
// bytes, and inside a stretch that is too long for its splitting of words.
#pragma once

#include <cstddef>
#include <string_view>

namespace vericache::model {

// Bytes at the start of `text` that are valid UTF-8 (no surrogates, nothing overlong).
size_t ValidUtf8Prefix(std::string_view text);

// Bytes up to where a stretch of more than max_characters without a change between ASCII space and
// other characters must be cut; text.size() if there is none. Requires: text is valid UTF-8.
size_t EndOfLongStretch(std::string_view text, size_t max_characters);

// The next character boundary at or after `offset`.
size_t CharacterBoundary(std::string_view text, size_t offset);

}  // namespace vericache::model
