// A compressor: KV in, packed KV out. Nothing else.
//
// Why a pure function (I6): the scheduler, the verifier and the stores must never know which method
// made a packed KV, and a method must be testable on random tensors without a model. What it needs
// beyond keys and values it declares; the forward pass collects just that and hands it over as
// Hints.
//
// A new method is one file and one line in registry.cc.
// Invariants: I7 (degrees sum to the tokens represented; positions ascend).
// Threads:    const and re-entrant; one instance may compress many sessions.
// Source:     interface of VeriCache (arXiv 2605.17613), Listing 1, widened by per-head counts,
//             degrees and declared needs.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/thread_team.h"
#include "compress/hints.h"
#include "kernels/kernels.h"
#include "kv/packed_kv.h"

namespace vericache::compress {

// Which KV a repeated compression of a growing sequence reads.
enum class Refresh : uint8_t {
  kFromFull,   // the full KV, anew: the method has no memory
  kFromDraft,  // the draft KV (body with degrees, exact tail): merges accumulate (CentroidKV)
};

// What a method is, as far as anyone outside has to know.
struct Traits {
  std::string_view name;          // as in a spec: "snapkv"; valid while the compressor lives
  int version = 1;                // another one when the same input gives another output
  Needs needs = Needs::kNothing;  // what Hints must hold
  int n_window = 0;               // kWindowQueries: tokens whose queries are read, at most
  bool is_query_agnostic = true;  // false: the choice encodes one question; never shared
  bool is_ragged = false;         // heads of one layer may keep different counts
  bool is_final = false;          // nothing may follow it in a chain
  bool is_exact = false;          // drafts as the full KV itself; body_grain is then a whole chunk
  int body_grain = 64;            // the body's end is a multiple of this many tokens
  Refresh refresh = Refresh::kFromFull;
};

// What to compress: tokens [0, end) of the source.
struct Job {
  const kv::KvSource* source = nullptr;
  const Hints* hints = nullptr;  // may be null if the method needs nothing
  Position end{0};
  int round = 0;      // 0 at the end of prefill, then 1, 2, ... (annealing)
  uint64_t seed = 0;  // for methods that draw (tests only)
  // Every table gives the same bits; the scalar one is only slow.
  const kernels::KernelTable* kernels = &kernels::RefKernels();
};

class Compressor {
 public:
  virtual ~Compressor() = default;

  virtual Traits GetTraits() const = 0;
  // The canonical spec, every parameter named: what results and stored keys show.
  virtual std::string Spec() const = 0;

  // Compresses tokens [0, job.end) of the source; the heads' work is shared by the team.
  // Requires: hints as declared by GetTraits().needs; job.end <= source.TokenCount().
  // Errors:   kInvalidArgument if the source or hints cannot be compressed this way.
  // Cost:     stated by each method, in slots n and head_dim d.
  [[nodiscard]] virtual Result<kv::PackedKv> Compress(const Job& job, ThreadTeam& team) const = 0;
};

}  // namespace vericache::compress
