// Compares a loaded model's matrices and vectors with the tensors that the format's names promise.
#pragma once

#include <ggml.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "model/gguf_file.h"
#include "model/model.h"

namespace vericache::testing_support {

// All rows of a tensor as ggml dequantises them.
inline std::vector<float> DequantizedByGgml(const model::GgufFile& file,
                                            const model::GgufTensor& tensor) {
  std::vector<std::byte> bytes(tensor.n_bytes);
  EXPECT_TRUE(file.File().Read(tensor.offset, bytes).has_value());
  std::vector<float> out(static_cast<size_t>(tensor.shape[0] * tensor.RowCount()));
  if (tensor.type == GGML_TYPE_F32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
  } else {
    ggml_get_type_traits(static_cast<ggml_type>(tensor.type))
        ->to_float(bytes.data(), out.data(), static_cast<int64_t>(out.size()));
  }
  return out;
}

inline std::vector<float> AllRows(const kernels::PackedMatrix& matrix) {
  const auto k = static_cast<size_t>(matrix.k);
  std::vector<float> rows(static_cast<size_t>(matrix.n) * k);
  for (int n = 0; n < matrix.n; ++n) {
    kernels::DequantizeRow(matrix, n, rows.data() + static_cast<size_t>(n) * k);
  }
  return rows;
}

inline void ExpectTensor(const model::GgufFile& file, const std::string& name,
                         const std::vector<float>& values) {
  const model::GgufTensor* tensor = file.FindTensor(name);
  ASSERT_NE(tensor, nullptr) << name;
  EXPECT_TRUE(DequantizedByGgml(file, *tensor) == values) << name;
}

// Every tensor of layer `i`, by the names of GGUF.
inline void ExpectLayerTensors(const model::GgufFile& file, const model::Model& loaded, size_t i) {
  const model::LayerWeights& layer = loaded.GetWeights().layers[i];
  const auto name = [&](const char* tensor) { return "blk." + std::to_string(i) + "." + tensor; };
  ExpectTensor(file, name("attn_norm.weight"), layer.attn_norm);
  ExpectTensor(file, name("attn_q.weight"), AllRows(layer.wq));
  ExpectTensor(file, name("attn_k.weight"), AllRows(layer.wk));
  ExpectTensor(file, name("attn_v.weight"), AllRows(layer.wv));
  ExpectTensor(file, name("attn_output.weight"), AllRows(layer.wo));
  ExpectTensor(file, name("ffn_norm.weight"), layer.ffn_norm);
  ExpectTensor(file, name("ffn_gate.weight"), AllRows(layer.gate));
  ExpectTensor(file, name("ffn_up.weight"), AllRows(layer.up));
  ExpectTensor(file, name("ffn_down.weight"), AllRows(layer.down));
  if (file.FindTensor(name("attn_q.bias")) != nullptr) {
    ExpectTensor(file, name("attn_q.bias"), layer.bq);
    ExpectTensor(file, name("attn_k.bias"), layer.bk);
    ExpectTensor(file, name("attn_v.bias"), layer.bv);
  }
  if (file.FindTensor(name("attn_q_norm.weight")) != nullptr) {
    ExpectTensor(file, name("attn_q_norm.weight"), layer.q_norm);
    ExpectTensor(file, name("attn_k_norm.weight"), layer.k_norm);
  }
}

}  // namespace vericache::testing_support
