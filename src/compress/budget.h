// How much of a head a method may keep. A concept of its own: methods ask for the budget of a head
// and do not care how the whole was divided.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "compress/spec.h"

namespace vericache::compress {

struct HeadBudget {
  int n_slots = 0;   // to keep at most
  int n_sinks = 0;   // of them, the first slots of the sequence: always kept
  int n_recent = 0;  // of them, the last ones: always kept
};

// How a model's budget is divided among its heads; the mean over them is the same.
enum class Division : uint8_t {
  kUniform,  // every head the same
  kLayer,    // falling linearly from the first layer to the last (PyramidKV)
  kHead,     // each layer's share goes to the heads with the best scores (AdaKV, head_division.h)
};

struct LayerAt {
  int layer = 0;
  int n_layers = 1;
};

// A share of the tokens seen. A share of tokens, not of the slots that are left: a budget then
// means the same to a method that starts from the full KV, to one that starts from a draft KV
// whose body was merged before, and to a later stage of a chain.
struct Budget {
  double keep = 1.0;  // (0, 1]
  int n_sinks = 0;
  int n_recent = 0;
  Division division = Division::kUniform;

  // Of one head that saw n_tokens. What is protected is kept whatever the share. Heads of a layer
  // get the same here; kHead moves what is not protected between them once there are scores.
  // Requires: n_tokens >= 0.
  // Source: layers as in Cai et al., "PyramidKV", and its code: with T slots to give to a layer on
  //         average, from 2T - T/20 down to T/20, less steep where a layer has not so many tokens.
  HeadBudget For(const LayerAt& at, int n_tokens) const;
};

// Reads the key `budget`: uniform, layer, and head if the method can divide by scores.
Division ReadDivision(Parameters& parameters, bool offers_heads);
// The word that ReadDivision reads as this one.
std::string_view NameOf(Division division);

}  // namespace vericache::compress
