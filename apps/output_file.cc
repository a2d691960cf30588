#include "apps/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include "store/atomic_file.h"

namespace vericache::apps {

Status CheckReplaceable(const std::string& path) {
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
