// A model split over several files, as llama.cpp's gguf-split writes them:
// "NAME-00001-of-00003.gguf" and so on. The first file holds all keys; each says its number and how
// many there are.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/gguf_file.h"

namespace vericache::model {

struct SplitPlace {
  int number = 0;         // from 0
  int count = 1;          // 1: not split
  int64_t n_tensors = 0;  // of all files together
};

// What the keys of one file say. Errors: kDataLoss for numbers that cannot be.
Result<SplitPlace> ReadSplitPlace(const GgufFile& file);

// Where the parts lie, by the name of the first.
// Errors: kInvalidArgument if `first` is another part (the error names the first) or is not named
// as a part is.
Result<std::vector<std::string>> SplitPaths(const std::string& path, const SplitPlace& first);

// That the file at `path`, which says `place`, is part `number` of the model that `first` begins.
// Errors: kDataLoss.
Status CheckSplitPlace(const std::string& path, const SplitPlace& place, const SplitPlace& first,
                       int number);
// That all parts together have the tensors that the first one promises. Errors: kDataLoss.
Status CheckSplitTensors(const GgufFile& joined, const SplitPlace& first);

}  // namespace vericache::model
