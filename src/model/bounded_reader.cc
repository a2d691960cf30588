#include "model/bounded_reader.h"

#include <algorithm>

namespace vericache::model {
namespace {
constexpr uint64_t kWindowBytes = uint64_t{64} << 10;
}  // namespace

// Compares, never adds: a declared size may be near 2^64.
bool BoundedReader::Expect(uint64_t n_bytes, std::string_view what) {
  if (status_ && n_bytes > Remaining()) {
    Fail(ErrorCode::kDataLoss,
         "{} takes {} bytes at offset {}, but only {} are left of a file of {} (truncated?)", what,
         n_bytes, offset_, Remaining(), file_.Size());
  }
  return IsGood();
}

std::string BoundedReader::ReadString(std::string_view what, uint64_t max_bytes) {
  const auto length = Read<uint64_t>(what);
  if (!Expect(length, what)) return {};
  if (length > max_bytes) {
    Fail(ErrorCode::kDataLoss, "{} has a length of {} bytes, at most {} are allowed", what, length,
         max_bytes);
    return {};
  }
  std::string text(static_cast<size_t>(length), '\0');
  Copy(std::as_writable_bytes(std::span(text)));
  return text;
}

void BoundedReader::SkipString(std::string_view what) {
  const auto length = Read<uint64_t>(what);
  if (Expect(length, what)) Skip(length);
}

void BoundedReader::Copy(std::span<std::byte> out) {
  for (size_t n_done = 0; n_done < out.size() && status_;) {
    if (offset_ < window_begin_ || offset_ >= window_begin_ + window_.size()) {
      window_begin_ = offset_;
      window_.resize(static_cast<size_t>(std::min(kWindowBytes, Remaining())));
      status_ = file_.Read(window_begin_, window_);
      continue;
    }
    const auto at = static_cast<size_t>(offset_ - window_begin_);
    const size_t n = std::min(window_.size() - at, out.size() - n_done);
    std::memcpy(out.data() + n_done, window_.data() + at, n);
    n_done += n;
    offset_ += n;
  }
}

}  // namespace vericache::model
