// Transcendental functions in binary64 that give the same bits on every machine.
//
// The platform's libm may round differently from one machine to the next; rotation tables and
// sampling noise must not (I3). Each function here is a fixed sequence of + - * / and integer
// operations, unfused, and close to correctly rounded: within 1 ulp in the ranges stated.
// Threads: pure functions. Source: docs/numerics.md sections 4 and 5; Taylor series throughout.
#pragma once

namespace vericache {

// Natural logarithm. Requires: x > 0, normal and finite.
double ExactLog(double x);

// base^exponent. Requires: base > 0, normal and finite; the result lies in [2^-1000, 2^1000].
double ExactPow(double base, double exponent);

struct SinCos {
  double sin;
  double cos;
};
// Sine and cosine of an angle in radians. Requires: |angle| <= 1e8.
SinCos ExactSinCos(double angle);

}  // namespace vericache
