#include "model/gguf_split.h"

#include <llama.h>

namespace vericache::model {
namespace {

constexpr int64_t kMaxParts = 512;  // far above what exists, and below what may be open at once

std::string PartPath(const std::string& prefix, int number, int count) {
  std::string path(prefix.size() + 32, '\0');
  path.resize(static_cast<size_t>(
      llama_split_path(path.data(), path.size(), prefix.c_str(), number, count)));
  return path;
}

// Empty if the file is not named as part `place.number` of `place.count` is.
std::string Prefix(const std::string& path, const SplitPlace& place) {
  std::string prefix(path.size() + 1, '\0');
  prefix.resize(static_cast<size_t>(
      llama_split_prefix(prefix.data(), prefix.size(), path.c_str(), place.number, place.count)));
  return prefix;
}

}  // namespace

Result<SplitPlace> ReadSplitPlace(const GgufFile& file) {
  if (file.Find("split.count") == nullptr) return SplitPlace{};
  int64_t values[3] = {};
  const char* const keys[3] = {"split.count", "split.no", "split.tensors.count"};
  const int64_t bounds[3] = {kMaxParts, kMaxParts - 1, int64_t{1} << 20};
  for (int i = 0; i < 3; ++i) {
    const Result<int64_t> value = file.Integer(keys[i]);
    if (!value) return tl::unexpected(Error{ErrorCode::kDataLoss, value.error().message});
    if (*value < 0 || *value > bounds[i]) {
      return MakeError(ErrorCode::kDataLoss, "{}: key \"{}\" is {}, expected 0 to {}", file.Path(),
                       keys[i], *value, bounds[i]);
    }
    values[i] = *value;
  }
  if (values[0] <= 1) return SplitPlace{};
  if (values[1] >= values[0]) {
    return MakeError(ErrorCode::kDataLoss, "{}: says it is part {} of {} (counted from 0)",
                     file.Path(), values[1], values[0]);
  }
  return SplitPlace{static_cast<int>(values[1]), static_cast<int>(values[0]), values[2]};
}

Result<std::vector<std::string>> SplitPaths(const std::string& path, const SplitPlace& first) {
  const std::string prefix = Prefix(path, first);
  if (prefix.empty()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        "{}: is part {} of a model split over {} files, and should be named \"...{}\"; give the "
        "files the names they were made with",
        path, first.number + 1, first.count, PartPath("", first.number, first.count));
  }
  if (first.number != 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{}: is part {} of a model split over {} files; give the first one, {}", path,
                     first.number + 1, first.count, PartPath(prefix, 0, first.count));
  }
  std::vector<std::string> paths;
  for (int number = 0; number < first.count; ++number)
    paths.push_back(PartPath(prefix, number, first.count));
  return paths;
}

Status CheckSplitPlace(const std::string& path, const SplitPlace& place, const SplitPlace& first,
                       int number) {
  if (place.number == number && place.count == first.count) return {};
  return MakeError(ErrorCode::kDataLoss,
                   "{}: says it is part {} of {}, expected part {} of {}; is it of another model?",
                   path, place.number + 1, place.count, number + 1, first.count);
}

Status CheckSplitTensors(const GgufFile& joined, const SplitPlace& first) {
  const auto n_tensors = static_cast<int64_t>(joined.Tensors().size());
  if (n_tensors == first.n_tensors) return {};
  return MakeError(ErrorCode::kDataLoss,
                   "{}: its {} parts have {} tensors, expected {}; is one of another model?",
                   joined.Path(), first.count, n_tensors, first.n_tensors);
}

}  // namespace vericache::model
