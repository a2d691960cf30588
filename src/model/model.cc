#include "model/model.h"

#include "model/architectures.h"
#include "model/config.h"
#include "model/fingerprint.h"
#include "model/gguf_file.h"
#include "model/memory_check.h"
#include "model/weights.h"

namespace vericache::model {

Result<std::unique_ptr<Model>> Model::Load(const std::string& path, ThreadTeam& team) {
  const Result<GgufFile> file = GgufFile::Open(path);
  if (!file) return tl::unexpected(file.error());
  VC_RETURN_IF_ERROR(CheckMemory(path, file->SizeInBytes(), ReadMachineLimits()));
  Result<ModelConfig> config = ReadConfig(*file);
  if (!config) return tl::unexpected(config.error());

  auto model = std::make_unique<Model>();
  model->weights_.layers.resize(static_cast<size_t>(config->n_layers));
  WeightLoader loader(*file);
  TraitsOf(config->architecture).name_tensors(*config, loader, model->weights_);
  const Result<std::vector<TensorDigest>> digests = loader.Load(team);
  if (!digests) return tl::unexpected(digests.error());

  Result<std::string> fingerprint = FingerprintOf(*file, *config, *digests);
  if (!fingerprint) return tl::unexpected(fingerprint.error());
  model->fingerprint_ = std::move(*fingerprint);
  model->config_ = std::move(*config);
  return model;
}

size_t Model::PassWeightBytes() const {
  return WeightBytes() - (weights_.output.n > 0 ? weights_.embedding.data.size() : 0);
}

size_t Model::WeightBytes() const {
  size_t n_bytes = weights_.embedding.data.size() + weights_.output.data.size();
  const auto floats = [](const std::vector<float>& v) { return v.size() * sizeof(float); };
  n_bytes += floats(weights_.output_norm);
  for (const LayerWeights& layer : weights_.layers) {
    for (const kernels::PackedMatrix* matrix :
         {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.gate, &layer.up, &layer.down}) {
      n_bytes += matrix->data.size();
    }
    n_bytes += floats(layer.attn_norm) + floats(layer.ffn_norm) + floats(layer.bq) +
               floats(layer.bk) + floats(layer.bv) + floats(layer.q_norm) + floats(layer.k_norm);
  }
  return n_bytes;
}

}  // namespace vericache::model
