// Sampling parameters as JSON, in llama.cpp's names: what a report shows, and what a log must give
// back to the bit.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "decode/request.h"

namespace vericache::apps {

nlohmann::ordered_json SamplingToJson(const decode::SamplingParams& sampling);
// Throws nlohmann's exceptions for a missing or mistyped key: who reads a file catches them, once.
// Values out of range are ValidateRequest's to refuse.
decode::SamplingParams SamplingFromJson(const nlohmann::ordered_json& object);

}  // namespace vericache::apps
