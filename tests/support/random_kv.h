// A full KV of random content: what kv and compressor tests read. Content is made as a forward pass
// makes it: encoded by the definition, row by row, and committed.
#pragma once

#include <memory>
#include <vector>

#include "kernels/kernels.h"
#include "kv/full_kv.h"
#include "kv/i16_slots.h"
#include "tests/support/property.h"

namespace vericache::testing_support {

// What the vectors look like. Compressors must cope with all of them.
enum class KvContent : uint8_t {
  kNormal,
  kSmooth,    // each token close to the one before: what clustering is made for
  kTies,      // three distinct vectors, over and over
  kConstant,  // one vector
  kZero,
  kHuge,  // norms up to 1e30
};

struct KvOptions {
  kv::KvShape shape{.n_layers = 1, .n_kv_heads = 1, .head_dim = 16};
  int n_tokens = 0;
  KvContent content = KvContent::kNormal;
};

inline KvContent AnyContent(Rng& rng) {
  return rng.OneOf({KvContent::kNormal, KvContent::kSmooth, KvContent::kTies, KvContent::kConstant,
                    KvContent::kZero, KvContent::kHuge});
}

inline kv::KvShape AnyShape(Rng& rng) {
  return {.n_layers = rng.In(1, 3),
          .n_kv_heads = rng.In(1, 3),
          .head_dim = rng.OneOf({16, 32, 64, 80})};
}

// Fills x with the next vector of a kind. Modifies: x, which holds the vector before.
inline void NextVector(Rng& rng, KvContent content, std::vector<float>& x) {
  const float scale =
      content == KvContent::kHuge ? std::exp2(static_cast<float>(rng.In(-20, 100))) : 1.0f;
  const int n_wave = rng.In(0, 2);
  for (size_t dim = 0; dim < x.size(); ++dim) {
    const auto d = static_cast<float>(dim);
    switch (content) {
      case KvContent::kNormal:
      case KvContent::kHuge:
        x[dim] = scale * rng.Normal();
        break;
      case KvContent::kSmooth:
        x[dim] = 0.9f * x[dim] + 0.4f * rng.Normal();
        break;
      case KvContent::kTies:
        x[dim] = std::sin(d * static_cast<float>(n_wave + 1));
        break;
      case KvContent::kConstant:
        x[dim] = 1.0f + d;
        break;
      case KvContent::kZero:
        x[dim] = 0.0f;
        break;
    }
  }
}

// Writes one encoded row.
inline void WriteRow(const kv::RowSlot& row, const std::vector<float>& key,
                     const std::vector<float>& value) {
  const kernels::KernelTable& kernels = kernels::RefKernels();
  const auto head_dim = static_cast<int>(key.size());
  std::vector<int16_t> key_codes(key.size());
  std::vector<int16_t> value_codes(value.size());
  bool is_finite = true;
  const float key_step = kernels.encode_key(key.data(), head_dim, key_codes.data(), &is_finite);
  const float value_step =
      kernels.encode_value(value.data(), head_dim, value_codes.data(), &is_finite);
  kv::WriteI16Slot(row, head_dim,
                   {.key = key_codes.data(),
                    .value = value_codes.data(),
                    .key_step = key_step,
                    .value_step = value_step});
}

// Rows [0, n_rows) of a pass over any causal KV, uncommitted.
inline void WriteRandomRows(Rng& rng, kv::CausalKv& kv, int n_rows, KvContent content) {
  const kv::KvShape& shape = kv.Shape();
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    for (int head = 0; head < shape.n_kv_heads; ++head) {
      std::vector<float> key(static_cast<size_t>(shape.head_dim));
      std::vector<float> value(key.size());
      for (int row = 0; row < n_rows; ++row) {
        NextVector(rng, content, key);
        NextVector(rng, content, value);
        WriteRow(kv.NewRow(layer, head, row), key, value);
      }
    }
  }
}

// A full KV with its own pool.
class RandomKv {
 public:
  RandomKv(Rng& rng, const KvOptions& options, int n_spare_tokens = 0)
      : pool_(std::make_unique<kv::BlockPool>(
            options.shape, PoolBytes(options.shape, options.n_tokens + n_spare_tokens))),
        full_(std::make_unique<kv::FullKv>(*pool_)) {
    Append(rng, options.n_tokens, options.content);
  }

  void Append(Rng& rng, int n_tokens, KvContent content) {
    EXPECT_TRUE(full_->Reserve(full_->Length() + n_tokens).has_value());
    WriteRandomRows(rng, *full_, n_tokens, content);
    full_->Commit(n_tokens);
  }

  kv::FullKv& operator*() const { return *full_; }
  kv::FullKv* operator->() const { return full_.get(); }
  kv::BlockPool& Pool() const { return *pool_; }

 private:
  static size_t PoolBytes(const kv::KvShape& shape, int n_tokens) {
    const int n_blocks = (n_tokens + kv::kBlockTokens - 1) / kv::kBlockTokens * shape.n_layers;
    return kv::BlockLayout(shape).Bytes() * static_cast<size_t>(n_blocks);
  }

  std::unique_ptr<kv::BlockPool> pool_;
  std::unique_ptr<kv::FullKv> full_;
};

}  // namespace vericache::testing_support
