#include "store/kv_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/aligned_buffer.h"
#include "base/check.h"
#include "kv/i16_slots.h"
#include "store/atomic_file.h"

namespace vericache::store {
namespace {

constexpr std::string_view kMagic = "VCKV0001";  // its end is the format's revision
constexpr size_t kModelDigits = 64;

struct Header {
  char magic[8];
  char model[kModelDigits];
  int32_t numerics;
  int32_t n_layers;
  int32_t n_kv_heads;
  int32_t head_dim;
  int32_t n_tokens;
  int32_t n_note;
  uint64_t hash;  // of the header with a hash of 0, the note and the tokens
};
static_assert(sizeof(Header) == 104 && sizeof(TokenId) == 4);

int BlockCount(int n_tokens) { return (n_tokens + kv::kBlockTokens - 1) / kv::kBlockTokens; }

Header MakeHeader(const KvFileKey& key, const KvFileText& text, const kv::KvShape& shape) {
  VC_CHECK(key.model.size() == kModelDigits, "fingerprint '{}'", key.model);
  Header header{.magic = {},
                .model = {},
                .numerics = key.numerics,
                .n_layers = shape.n_layers,
                .n_kv_heads = shape.n_kv_heads,
                .head_dim = shape.head_dim,
                .n_tokens = static_cast<int32_t>(text.tokens.size()),
                .n_note = static_cast<int32_t>(text.note.size()),
                .hash = 0};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  std::memcpy(header.model, key.model.data(), kModelDigits);
  return header;
}

uint64_t HashOf(Header header, const KvFileText& text) {
  header.hash = 0;
  uint64_t hash = XXH3_64bits(&header, sizeof(header));
  hash = XXH3_64bits_withSeed(text.note.data(), text.note.size(), hash);
  return XXH3_64bits_withSeed(text.tokens.data(), text.tokens.size() * sizeof(TokenId), hash);
}

// seed: the chunk's place, behind the header's own hash, so that chunks of two files do not mix.
uint64_t HashOf(std::span<const std::byte> chunk, uint64_t seed) {
  return XXH3_64bits_withSeed(chunk.data(), chunk.size(), seed);
}

// Bytes that the header promises: before the blocks, and of the whole file.
uint64_t HeadBytes(const Header& header) {
  return sizeof(Header) + static_cast<uint64_t>(header.n_note) +
         static_cast<uint64_t>(header.n_tokens) * sizeof(TokenId);
}

uint64_t FileBytes(const Header& header, const kv::BlockLayout& layout) {
  const auto n_chunks =
      static_cast<uint64_t>(BlockCount(header.n_tokens)) * static_cast<uint64_t>(header.n_layers);
  return HeadBytes(header) + n_chunks * (layout.Bytes() + sizeof(uint64_t));
}

// ---- writing ------------------------------------------------------------------------------------

// A copy of the block with nothing behind its first n_slots: what lies there is somebody else's.
void CopyFirstSlots(const kv::KvShape& shape, const std::byte* block, int n_slots,
                    AlignedBuffer& copy) {
  const kv::BlockLayout layout(shape);
  std::memset(copy.data(), 0, layout.Bytes());
  for (int head = 0; head < shape.n_kv_heads; ++head) {
    const kernels::SlotRun run = kv::RunOf(layout, block, head);
    for (int slot = 0; slot < n_slots; ++slot) {
      kv::CopyI16Slot(run, slot, shape.head_dim, kv::RowOf(layout, copy.data(), head, slot));
    }
  }
}

Status WriteBlocks(AtomicFile& file, const kv::FullKv& full, int n_tokens, uint64_t seed) {
  const kv::BlockLayout layout(full.Shape());
  AlignedBuffer part(layout.Bytes());
  for (int block = 0; block < BlockCount(n_tokens); ++block) {
    const int n_slots = std::min(kv::kBlockTokens, n_tokens - block * kv::kBlockTokens);
    for (int layer = 0; layer < full.Shape().n_layers; ++layer) {
      std::span<const std::byte> bytes = full.BlockBytes(block, layer);
      if (n_slots < kv::kBlockTokens) {
        CopyFirstSlots(full.Shape(), bytes.data(), n_slots, part);
        bytes = {part.data(), bytes.size()};
      }
      const uint64_t hash = HashOf(bytes, ++seed);
      VC_RETURN_IF_ERROR(file.Write(bytes));
      VC_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(&hash, 1))));
    }
  }
  return {};
}

// ---- reading ------------------------------------------------------------------------------------

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

tl::unexpected<Error> Damaged(const std::string& path, std::string_view what) {
  return MakeError(ErrorCode::kDataLoss, "'{}' is damaged: {}", path, what);
}

bool ReadAll(std::FILE* file, void* to, size_t n_bytes) {
  return std::fread(to, 1, n_bytes, file) == n_bytes;
}

// What says whether it is a file of ours at all.
Status CheckMagic(const std::string& path, std::string_view found) {
  if (found == kMagic) return {};
  if (kMagic.starts_with(found)) return Damaged(path, "it ends before its first token");
  return MakeError(ErrorCode::kInvalidArgument,
                   "'{}' is no KV file of this version; name another file, or remove it", path);
}

Status CheckKey(const std::string& path, const Header& header, const KvFileKey& key) {
  const std::string_view model(header.model, kModelDigits);
  if (model != key.model) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "'{}' holds the KV of another model ({}..., this one is {}...); name another "
                     "file, or remove it",
                     path, model.substr(0, 12), key.model.substr(0, 12));
  }
  if (header.numerics != key.numerics) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "'{}' holds KV of numerics revision {}, this build computes revision {}; name "
                     "another file, or remove it",
                     path, header.numerics, key.numerics);
  }
  return {};
}

uint64_t SizeOf(std::FILE* file) {
  struct stat info {};
  return ::fstat(::fileno(file), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

Result<File> Open(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {  // opening a pipe would wait
    return MakeError(ErrorCode::kInvalidArgument, "'{}' is no regular file", path);
  }
  File file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file != nullptr) return file;
  return MakeError(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
                   "cannot read '{}': {}", path, std::strerror(errno));
}

// Everything before the blocks. Nothing is allocated before the file is known to be as long as its
// header says.
Result<Header> ReadHead(const std::string& path, std::FILE* file, KvFileText& text) {
  Header header{};
  const size_t n_read = std::fread(&header, 1, sizeof(header), file);
  VC_RETURN_IF_ERROR(
      CheckMagic(path, std::string_view(header.magic, std::min(n_read, kMagic.size()))));
  if (n_read < sizeof(header)) return Damaged(path, "it ends before its first token");
  if (header.n_note < 0 || header.n_tokens < 0 || HeadBytes(header) > SizeOf(file)) {
    return Damaged(path, "its header is not what was written");
  }
  text.note.resize(static_cast<size_t>(header.n_note));
  text.tokens.resize(static_cast<size_t>(header.n_tokens));
  if (!ReadAll(file, text.note.data(), text.note.size()) ||
      !ReadAll(file, text.tokens.data(), text.tokens.size() * sizeof(TokenId)) ||
      HashOf(header, text) != header.hash) {
    return Damaged(path, "its header is not what was written");
  }
  return header;
}

// Blocks of a file cut short are not even reserved.
Status CheckShape(const std::string& path, std::FILE* file, const Header& header,
                  const kv::KvShape& shape) {
  if ((kv::KvShape{header.n_layers, header.n_kv_heads, header.head_dim}) != shape) {
    return Damaged(path, "its shape is not the model's");  // forged: no checksum knows
  }
  if (SizeOf(file) == FileBytes(header, kv::BlockLayout(shape))) return {};
  return Damaged(path, fmt::format("it has {} bytes, not the {} that were written", SizeOf(file),
                                   FileBytes(header, kv::BlockLayout(shape))));
}

Status ReadBlocks(const std::string& path, std::FILE* file, int n_tokens, uint64_t seed,
                  kv::FullKv& full) {
  VC_RETURN_IF_ERROR(full.Reserve(n_tokens));
  for (int block = 0; block < BlockCount(n_tokens); ++block) {
    for (int layer = 0; layer < full.Shape().n_layers; ++layer) {
      const std::span<std::byte> bytes = full.NewBlockBytes(block, layer);
      uint64_t hash = 0;
      if (!ReadAll(file, bytes.data(), bytes.size()) || !ReadAll(file, &hash, sizeof(hash)) ||
          hash != HashOf(bytes, ++seed)) {
        return Damaged(path, fmt::format("tokens from {} on are not what was written",
                                         block * kv::kBlockTokens));
      }
    }
  }
  full.Commit(n_tokens);
  return {};
}

// A file that somebody else wrote is not ours to replace. An empty one is.
Status CheckReplaceable(const std::string& path) {
  const auto file = Open(path);
  if (!file && file.error().code == ErrorCode::kNotFound) return {};
  VC_RETURN_IF_ERROR(file);
  char magic[kMagic.size()];
  const size_t n_read = std::fread(magic, 1, sizeof(magic), file->get());
  const Status status = CheckMagic(path, std::string_view(magic, n_read));
  return !status && status.error().code == ErrorCode::kInvalidArgument ? status : Status{};
}

}  // namespace

Status WriteKvFile(const std::string& path, const KvFileKey& key, const KvFileText& text,
                   const kv::FullKv& full) {
  VC_CHECK(static_cast<int>(text.tokens.size()) <= full.Length(), "{} tokens of {}",
           text.tokens.size(), full.Length());
  VC_RETURN_IF_ERROR(CheckReplaceable(path));
  Header header = MakeHeader(key, text, full.Shape());
  header.hash = HashOf(header, text);
  auto file = AtomicFile::Create(path);
  VC_RETURN_IF_ERROR(file);
  VC_RETURN_IF_ERROR(file->Write(std::as_bytes(std::span(&header, 1))));
  VC_RETURN_IF_ERROR(file->Write(std::as_bytes(std::span(text.note))));
  VC_RETURN_IF_ERROR(file->Write(std::as_bytes(std::span(text.tokens))));
  VC_RETURN_IF_ERROR(WriteBlocks(*file, full, header.n_tokens, header.hash));
  return file->Finish();
}

Result<KvFileText> ReadKvFile(const std::string& path, const KvFileKey& key, kv::FullKv& full) {
  VC_CHECK(full.Length() == 0, "{} tokens", full.Length());
  auto file = Open(path);
  VC_RETURN_IF_ERROR(file);
  KvFileText text;
  const auto header = ReadHead(path, file->get(), text);
  VC_RETURN_IF_ERROR(header);
  VC_RETURN_IF_ERROR(CheckKey(path, *header, key));
  VC_RETURN_IF_ERROR(CheckShape(path, file->get(), *header, full.Shape()));
  VC_RETURN_IF_ERROR(ReadBlocks(path, file->get(), header->n_tokens, header->hash, full));
  return text;
}

}  // namespace vericache::store
