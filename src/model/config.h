// Hyper-parameters from a GGUF file's keys.
#pragma once

#include "base/result.h"
#include "model/gguf_file.h"
#include "model/model.h"

namespace vericache::model {

// Errors: kUnsupported for another architecture (with the list of those that work) or a feature we
// do not have; kDataLoss for
//         keys that are missing, out of range or contradict each other.
Result<ModelConfig> ReadConfig(const GgufFile& file);

}  // namespace vericache::model
