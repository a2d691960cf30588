// A tiny model's file in a folder of its own, of any architecture.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/architectures.h"
#include "model/tiny_model.h"
#include "tests/support/gguf_bytes.h"

namespace vericache::testing_support {

// What is registered is tested.
inline std::vector<model::Architecture> AllArchitectures() {
  std::vector<model::Architecture> ids;
  for (const model::ArchitectureTraits& traits : model::Architectures()) ids.push_back(traits.id);
  return ids;
}

class TinyModelFile {
 public:
  explicit TinyModelFile(const model::TinyModelSpec& spec = {}) : path_(folder_.Path("tiny.gguf")) {
    const Status status = model::WriteTinyModel(spec, path_);
    if (!status) ADD_FAILURE() << status.error().message;
  }
  const std::string& Path() const { return path_; }

 private:
  TempFolder folder_;
  std::string path_;
};

}  // namespace vericache::testing_support
