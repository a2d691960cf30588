// IEEE binary16 and bfloat16 to and from binary32 with the bits that hardware gives (round to
// nearest even; a NaN stays some NaN), without needing it. Pure functions.
#pragma once

#include <cstdint>

namespace vericache {

float F16ToF32(uint16_t half);
uint16_t F32ToF16(float value);  // round to nearest even; overflow gives infinity
float Bf16ToF32(uint16_t bits);

}  // namespace vericache
