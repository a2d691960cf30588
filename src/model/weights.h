// Loads and packs the tensors of a file: runs of rows are read, hashed and packed by whichever
// thread is free, and nothing but the packed form stays in memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "model/gguf_file.h"

namespace vericache::model {

// A tensor as the fingerprint sees it.
struct TensorDigest {
  std::string name;
  std::string type;
  std::string shape;  // "576 1536", fastest first
  std::string hash;   // hex XXH3-128 over the XXH3-128 of every 16 rows
};

// An architecture first asks for its tensors by name and shape, then all are loaded at once. What
// is asked for must stay in place until Load has returned. The first error sticks and comes out of
// Load.
class WeightLoader {
 public:
  explicit WeightLoader(const GgufFile& file);
  ~WeightLoader();

  // Shapes: n rows of k columns, y = W x.
  void Matrix(const std::string& name, int n, int k, kernels::PackedMatrix& out);
  void Vector(const std::string& name, int n, std::vector<float>& out);
  // Leave `out` empty if the file has no such tensor.
  void OptionalMatrix(const std::string& name, int n, int k, kernels::PackedMatrix& out);
  void OptionalVector(const std::string& name, int n, std::vector<float>& out);

  // Errors: kDataLoss for a missing tensor, another shape or a file cut meanwhile; kUnsupported for
  // a tensor nobody asked for (the
  //         result would silently be another model's) or a type that cannot be dequantised.
  // Cost:   one read of the file; packing is shared by the team.
  Result<std::vector<TensorDigest>> Load(ThreadTeam& team);

 private:
  struct Request;
  const GgufTensor* Require(const std::string& name, int64_t n_columns, int64_t n_rows);
  Status CheckNothingLeft() const;

  const GgufFile& file_;
  Status status_;
  std::vector<Request> requests_;
};

}  // namespace vericache::model
