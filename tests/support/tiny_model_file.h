// A tiny model's file in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "model/tiny_model.h"
#include "tests/support/gguf_bytes.h"

namespace vericache::testing_support {

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
