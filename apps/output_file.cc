#include "apps/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>

#include "store/atomic_file.h"

namespace vericache::apps {

Error WriteError(std::string_view name, int error_number) {
  return {error_number == EPIPE ? ErrorCode::kCancelled : ErrorCode::kNotFound,
          fmt::format("cannot write {}: {}", name, std::strerror(error_number))};
}

Status Print(std::FILE* out, std::string_view text) {
  const bool is_good = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if ((std::fflush(out) == 0 && is_good) || out == stderr) return {};
  return tl::unexpected(WriteError(kStandardOutput, errno));
}

Status CheckReplaceable(const std::string& path) {
  if (path.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "the name of a file to write is empty");
  }
  std::error_code unknown;
  const std::filesystem::file_status known = std::filesystem::status(path, unknown);
  if (std::filesystem::exists(known) && !std::filesystem::is_regular_file(known)) {
    return MakeError(ErrorCode::kInvalidArgument, "cannot write '{}': it is no regular file", path);
  }
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (::access(folder.c_str(), W_OK) == 0) return {};
  return MakeError(ErrorCode::kNotFound, "cannot write '{}': {}", path, std::strerror(errno));
}

Status ReplaceFile(const std::string& path, std::string_view text) {
  auto file = store::AtomicFile::Create(path);
  VC_RETURN_IF_ERROR(file);
  VC_RETURN_IF_ERROR(file->Write(std::as_bytes(std::span(text))));
  return file->Finish();
}

}  // namespace vericache::apps
